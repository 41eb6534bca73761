/* test_box.c - boxes against an oracle that finds the rank of each byte */
#include "lattice.h"

enum {
    SITES_MAX = 1500,
    SITE_MAX = 9,
    NOBODY = -1,
};

/* The rank of a byte of the file, and its offset in that rank's memory. */
struct owner {
    int rank;
    int64_t place;
};

static int holds(const struct lemon_box *box, int64_t site)
{
    for (int i = box->dims - 1; i >= 0; i--) {
        int64_t coordinate = site % box->extent[i] - box->start[i];
        if (coordinate < 0 || coordinate >= box->sites[i])
            return 0;
        site /= box->extent[i];
    }
    return 1;
}

/* Fails if a site belongs to no box, or to two. */
static struct owner *owners_of(const struct lattice *lattice)
{
    int64_t site_bytes = lattice->boxes[0].site_bytes, place[LATTICE_RANKS] = {0};
    struct owner *owners = malloc((size_t)lattice->bytes * sizeof *owners);
    assert_non_null(owners);
    for (int64_t site = 0; site < lattice->bytes / site_bytes; site++) {
        int owner = NOBODY;
        for (int rank = 0; rank < lattice->ranks; rank++)
            if (holds(&lattice->boxes[rank], site)) {
                assert_int_equal(owner, NOBODY);
                owner = rank;
            }
        assert_int_not_equal(owner, NOBODY);
        for (int64_t b = site * site_bytes; b < (site + 1) * site_bytes; b++)
            owners[b] = (struct owner){owner, place[owner]++};
    }
    for (int rank = 0; rank < lattice->ranks; rank++)
        assert_int_equal(lemon_box_bytes(&lattice->boxes[rank]), place[rank]);
    return owners;
}

TEST(test_split_deals_all_sites)
{
    for (int64_t extent = 1; extent < 50; extent++)
        for (int n = 1; n < 20; n++) {
            int64_t next = 0, start, sites;
            for (int c = 0; c < n; c++) {
                lemon_box_split(extent, n, c, &start, &sites);
                assert_int_equal(start, next);
                assert_int_equal(sites, extent / n + (c < extent % n ? 1 : 0));
                next += sites;
            }
            assert_int_equal(next, extent);
        }
}

TEST(test_boxes_partition_the_lattice)
{
    for (int i = chance_times(200); i > 0; i--) {
        struct lattice lattice;
        lattice_by_chance(&lattice, SITES_MAX, SITE_MAX);
        for (int rank = 0; rank < lattice.ranks; rank++)
            assert_int_equal(lemon_box_lattice_bytes(&lattice.boxes[rank]), lattice.bytes);
        free(owners_of(&lattice));
    }
}

TEST(test_before_counts_the_bytes_of_the_box)
{
    for (int i = chance_times(100); i > 0; i--) {
        struct lattice lattice;
        lattice_by_chance(&lattice, SITES_MAX, SITE_MAX);
        struct owner *owners = owners_of(&lattice);
        for (int rank = 0; rank < lattice.ranks; rank++) {
            int64_t before = 0;
            for (int64_t at = 0; at < lattice.bytes; at++) {
                assert_int_equal(lemon_box_bytes_before(&lattice.boxes[rank], at), before);
                if (owners[at].rank == rank)
                    assert_int_equal(owners[at].place, before++);
            }
            assert_int_equal(lemon_box_bytes_before(&lattice.boxes[rank], lattice.bytes),
                             before);
        }
        free(owners);
    }
}

/* Each run is as long as possible. */
TEST(test_runs)
{
    for (int i = chance_times(200); i > 0; i--) {
        struct lattice lattice;
        lattice_by_chance(&lattice, SITES_MAX, SITE_MAX);
        struct owner *owners = owners_of(&lattice);
        for (int rank = 0; rank < lattice.ranks; rank++) {
            const struct lemon_box *box = &lattice.boxes[rank];
            int64_t run_bytes = lemon_box_run_bytes(box), run = 0;
            for (int64_t at = 0; at < lattice.bytes; at++) {
                if (owners[at].rank != rank)
                    continue;
                assert_true(run_bytes > 0);
                assert_int_equal(lemon_box_run_offset(box, run_bytes, run++), at);
                int64_t end = at;
                while (end < lattice.bytes && owners[end].rank == rank)
                    end++;
                assert_int_equal(end - at, run_bytes);
                at = end;
            }
            assert_int_equal(run * run_bytes, lemon_box_bytes(box));
            assert_int_equal(run_bytes == 0, lemon_box_bytes(box) == 0);
        }
        free(owners);
    }
}

/* ---- windows ---- */

static void random_bytes(char *at, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        at[i] = (char)chance_below(256);
}

/* Buffers of exactly the required size, so that memory checkers detect an overrun. */
struct copies {
    char *window, *part;
    char *want_window, *want_part;
    int64_t n; /* bytes of the part */
};

static void copies_make(struct copies *copies, const struct owner *owners, int rank,
                        int64_t from, int64_t to, int to_window)
{
    size_t window_bytes = to > from ? (size_t)(to - from) : 0;
    copies->n = 0;
    for (int64_t at = from; at < to; at++)
        copies->n += owners[at].rank == rank;
    copies->window = malloc(window_bytes);
    copies->want_window = malloc(window_bytes);
    copies->part = malloc((size_t)copies->n);
    copies->want_part = malloc((size_t)copies->n);
    random_bytes(copies->window, to - from);
    random_bytes(copies->part, copies->n);
    for (int64_t at = from, i = 0; at < to; at++) {
        copies->want_window[at - from] = copies->window[at - from];
        if (owners[at].rank != rank)
            continue;
        if (to_window)
            copies->want_window[at - from] = copies->part[i];
        copies->want_part[i] = to_window ? copies->part[i] : copies->window[at - from];
        i++;
    }
}

static void copies_check_and_free(struct copies *copies, int64_t window_bytes)
{
    assert_memory_equal(copies->window, copies->want_window, (size_t)window_bytes);
    assert_memory_equal(copies->part, copies->want_part, (size_t)copies->n);
    free(copies->window);
    free(copies->want_window);
    free(copies->part);
    free(copies->want_part);
}

TEST(test_scatter_and_gather_any_window)
{
    for (int i = chance_times(200); i > 0; i--) {
        struct lattice lattice;
        lattice_by_chance(&lattice, SITES_MAX, SITE_MAX);
        struct owner *owners = owners_of(&lattice);
        for (int tries = 0; tries < 20; tries++) {
            int rank = (int)chance_below((uint64_t)lattice.ranks);
            int64_t from = (int64_t)chance_below((uint64_t)lattice.bytes);
            int64_t to = from + (int64_t)chance_below((uint64_t)(lattice.bytes - from) + 1);
            struct copies copies;
            copies_make(&copies, owners, rank, from, to, 1);
            lemon_box_scatter(&lattice.boxes[rank], from, to, copies.part, copies.window);
            copies_check_and_free(&copies, to - from);
            copies_make(&copies, owners, rank, from, to, 0);
            lemon_box_gather(&lattice.boxes[rank], from, to, copies.window, copies.part);
            copies_check_and_free(&copies, to - from);
        }
        free(owners);
    }
}

/* ---- sizes ---- */

TEST(test_too_many_bytes)
{
    /* 2^63 - 1 = 7 * 7 * 73 * 127 * 337 * 92737 * 649657 */
    struct lemon_box box = {.dims = 3,
                            .extent = {49 * 73 * 127, 337 * 92737, 649657},
                            .sites = {49 * 73 * 127, 337 * 92737, 649657},
                            .site_bytes = 1};
    assert_int_equal(lemon_box_lattice_bytes(&box), INT64_MAX);
    assert_int_equal(lemon_box_bytes(&box), INT64_MAX);
    box.site_bytes = 2;
    assert_int_equal(lemon_box_lattice_bytes(&box), -1);
    assert_int_equal(lemon_box_bytes(&box), -1);
    box.sites[1] /= 2;
    assert_true(lemon_box_bytes(&box) > 0);
    box.site_bytes = 0;
    assert_int_equal(lemon_box_lattice_bytes(&box), 0);

    struct lemon_box two = {.dims = 3, .extent = {1 << 21, 1 << 21, 1 << 21}, .site_bytes = 1};
    assert_int_equal(lemon_box_lattice_bytes(&two), -1);
    two.extent[2]--;
    assert_int_equal(lemon_box_lattice_bytes(&two), INT64_MAX - ((INT64_C(1) << 42) - 1));
    struct lemon_box most = {.dims = LEMON_BOX_DIMS, .site_bytes = 1};
    for (int i = 0; i < LEMON_BOX_DIMS; i++)
        most.extent[i] = INT32_MAX;
    assert_int_equal(lemon_box_lattice_bytes(&most), -1);
}

TEST(test_sites_without_bytes)
{
    struct lemon_box box = {.dims = 2, .extent = {4, 4}, .sites = {2, 4}, .start = {1, 0}};
    assert_int_equal(lemon_box_lattice_bytes(&box), 0);
    assert_int_equal(lemon_box_bytes(&box), 0);
    assert_int_equal(lemon_box_run_bytes(&box), 0);
    assert_int_equal(lemon_box_bytes_before(&box, 0), 0);
    lemon_box_scatter(&box, 0, 0, NULL, NULL);
    lemon_box_gather(&box, 0, 0, NULL, NULL);
}
