/* test_plan.c - for any geometry, the aggregators' pieces contain each byte exactly once */
#include "lattice.h"

#include "lattice_plan.h"
#include "schedule.h"
#include "file_domains.h"

#define KIB INT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

static struct lemon_plan_hints hints_by_chance(void)
{
    return (struct lemon_plan_hints){
        .stripe = 1 + (int64_t)chance_below(chance_below(2) ? 50 : 5000),
        .aggregators = chance_below(2) ? (int64_t)chance_below(30) : 0,
        .round_bytes = chance_below(2)
                           ? (int64_t)chance_below(chance_below(2) ? 2000 : UINT64_C(4) << 30)
                           : 0,
    };
}

/* Sometimes small hints, as all extents of tiny lattices are short. */
static struct lemon_plan_hints hints_for_small(void)
{
    struct lemon_plan_hints hints = hints_by_chance();
    if (chance_below(3) > 0)
        hints.round_bytes = 1 + (int64_t)chance_below(3000);
    if (chance_below(3) > 0)
        hints.stripe = 1 + (int64_t)chance_below(3);
    return hints;
}

static int at_a_stripe(const struct lemon_plan *plan, int64_t at)
{
    return at == 0 || at == plan->bytes || (plan->base + at) % plan->stripe == 0;
}

/* ---- pieces ---- */

/* A byte of the lattice belongs to one piece; checked by marks, or by sums if it is huge. */
struct marks {
    unsigned char *moved; /* NULL: the lattice is huge */
    int64_t bytes;
};

static void mark(struct marks *marks, const struct lemon_piece *piece)
{
    marks->bytes += piece->to - piece->from;
    for (int64_t i = piece->from; marks->moved && i < piece->to; i++)
        assert_int_equal(marks->moved[i]++, 0);
}

static int64_t longest_turn(const struct lemon_plan_hints *hints)
{
    int64_t round = hints->round_bytes < hints->stripe ? hints->stripe : hints->round_bytes;
    return hints->round_bytes ? round : 64 * MIB + 2 * hints->stripe;
}

static void check_round(const struct lemon_plan *plan, const struct lemon_plan_hints *hints,
                        int64_t aggregator, int64_t round, struct marks *marks)
{
    struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX];
    int count = lemon_plan_round(plan, aggregator, round, pieces);
    int64_t sum = 0;
    assert_in_range(count, 0, LEMON_ROUND_PIECES_MAX);
    for (int i = 0; i < count; i++) {
        assert_true(pieces[i].from < pieces[i].to);
        assert_true(i == 0 || pieces[i - 1].to < pieces[i].from);
        assert_true(at_a_stripe(plan, pieces[i].from) && at_a_stripe(plan, pieces[i].to));
        assert_true(pieces[i].to - pieces[i].from <= longest_turn(hints));
        sum += pieces[i].to - pieces[i].from;
        mark(marks, &pieces[i]);
    }
    assert_true(sum <= INT32_MAX); /* limit of a message count */
}

static void check_plan(const struct lemon_plan *plan, const struct lemon_plan_hints *hints,
                       unsigned char *moved)
{
    struct marks marks = {.moved = moved};
    int64_t aggregators = 0;
    assert_true(plan->aggregators >= 1 && plan->aggregators <= plan->ranks);
    assert_true(hints->aggregators == 0 || plan->aggregators <= hints->aggregators);
    for (int64_t rank = 0; rank < plan->ranks; rank++) {
        int64_t aggregator = lemon_plan_aggregator(plan, rank);
        if (aggregator < 0)
            continue;
        assert_true(aggregator < plan->aggregators);
        aggregators++;
        for (int64_t round = 0; round < plan->rounds; round++)
            check_round(plan, hints, aggregator, round, &marks);
    }
    assert_int_equal(aggregators, plan->aggregators);
    assert_int_equal(marks.bytes, plan->bytes);
}

TEST(test_pieces_partition_the_lattice)
{
    for (int i = chance_times(3000); i > 0; i--) {
        struct lattice lattice;
        struct lemon_plan plan;
        struct lemon_plan_hints hints = i % 2 ? hints_for_small() : hints_by_chance();
        int64_t base = (int64_t)chance_below(100000);
        lattice_by_chance(&lattice, 3000, 100);
        unsigned char *moved = calloc((size_t)lattice.bytes + 1, 1);
        assert_non_null(moved);
        lemon_plan_init(&plan, &lattice.division, base, &hints);
        assert_int_equal(plan.ranks, lattice.ranks);
        assert_int_equal(plan.bytes, lattice.bytes);
        assert_int_equal(plan.base, base);
        check_plan(&plan, &hints, moved);
        free(moved);
    }
}

/* ---- schedules ---- */

/* The bytes from a rank to an aggregator in a round: by parts and by pieces. */
static int64_t bytes_by_parts(const struct lemon_schedule *schedule, int64_t round,
                              int64_t aggregator)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < schedule->part_count; i++)
        if (schedule->parts[i].round == round && schedule->parts[i].aggregator == aggregator)
            sum += schedule->parts[i].n;
    return sum;
}

/* A rank's parts are those of its box in the aggregator's pieces, in the same order. */
static void check_pieces_of(const struct lemon_box *box, const struct lemon_schedule *schedule,
                            int64_t round, int64_t rank, const struct lemon_piece *pieces,
                            int count)
{
    int64_t i = 0, used = 0;
    while (i < schedule->part_count &&
           (schedule->parts[i].round != round || schedule->parts[i].aggregator != rank))
        i++;
    for (int p = 0; p < count; p++) {
        int64_t at = lemon_box_bytes_before(box, pieces[p].from);
        int64_t n = lemon_box_bytes_before(box, pieces[p].to) - at;
        if (n == 0)
            continue;
        assert_true(i < schedule->part_count);
        assert_int_equal(schedule->parts[i].at + used, at);
        used += n;
        assert_true(used <= schedule->parts[i].n);
        if (used == schedule->parts[i].n)
            i++, used = 0;
    }
    assert_int_equal(used, 0);
}

static void check_sources(const struct lattice *lattice, const struct lemon_plan *plan,
                          const struct lemon_schedule *schedules, int64_t rank)
{
    const struct lemon_schedule *own = &schedules[rank];
    int64_t next = 0, bytes = 0, window = 0;
    for (int64_t round = 0; round < plan->rounds; round++) {
        struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX];
        int count = lemon_plan_round(plan, own->aggregator, round, pieces);
        int64_t sum = 0, sent = 0;
        for (int i = 0; i < count; i++)
            sum += pieces[i].to - pieces[i].from;
        for (int other = 0; other < plan->ranks; other++) {
            int64_t n = bytes_by_parts(&schedules[other], round, rank);
            check_pieces_of(&lattice->boxes[other], &schedules[other], round, rank, pieces,
                            count);
            sent += n;
            if (n == 0)
                continue;
            assert_true(next < own->source_count);
            assert_int_equal(own->sources[next].round, round);
            assert_int_equal(own->sources[next].rank, other);
            assert_int_equal(own->sources[next].n, n);
            next++;
        }
        assert_int_equal(sent, sum);
        bytes += sum;
        window = sum > window ? sum : window;
    }
    assert_int_equal(next, own->source_count);
    assert_int_equal(bytes, own->bytes);
    assert_int_equal(window, own->window);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct lemon_part *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* The parts contain each byte of the box once. */
static void check_parts(const struct lemon_box *box, struct lemon_schedule *schedule)
{
    int64_t next = 0;
    for (int64_t i = 1; i < schedule->part_count; i++)
        assert_true(schedule->parts[i - 1].round <= schedule->parts[i].round);
    if (schedule->part_count)
        qsort(schedule->parts, (size_t)schedule->part_count, sizeof *schedule->parts,
              compare_offsets);
    for (int64_t i = 0; i < schedule->part_count; i++) {
        assert_int_equal(schedule->parts[i].at, next);
        next += schedule->parts[i].n;
    }
    assert_int_equal(next, lemon_box_bytes(box));
}

/* Ranks send the bytes that aggregators expect, and these fill the aggregators' pieces. */
TEST(test_schedules_fit_together)
{
    for (int i = chance_times(600); i > 0; i--) {
        struct lattice lattice;
        struct lemon_plan plan;
        struct lemon_schedule schedules[LATTICE_RANKS];
        struct lemon_plan_hints hints = hints_for_small();
        lattice_by_chance(&lattice, 1000, 30);
        lemon_plan_init(&plan, &lattice.division, 1064, &hints);
        for (int rank = 0; rank < lattice.ranks; rank++)
            assert_int_equal(lemon_schedule_init(&schedules[rank], &plan, rank), 0);
        for (int rank = 0; rank < lattice.ranks; rank++)
            if (schedules[rank].aggregator >= 0)
                check_sources(&lattice, &plan, schedules, rank);
        for (int rank = 0; rank < lattice.ranks; rank++) {
            check_parts(&lattice.boxes[rank], &schedules[rank]);
            lemon_schedule_release(&schedules[rank]);
        }
    }
}

TEST(test_a_grid_gives_the_boxes)
{
    for (int i = chance_times(1000); i > 0; i--) {
        struct lattice lattice;
        lattice_by_chance(&lattice, 3000, 100);
        assert_int_equal(lemon_grid_ranks(&lattice.division), lattice.ranks);
        assert_int_equal(lemon_grid_bytes(&lattice.division), lattice.bytes);
        for (int rank = 0; rank < lattice.ranks; rank++) {
            struct lemon_box box = {0};
            lemon_grid_get_box(&lattice.division, rank, &box);
            assert_memory_equal(&box, &lattice.boxes[rank], sizeof box);
        }
    }
}

/* ---- direct, or through aggregators ---- */

/* A lattice of two dimensions with `inner` bytes of each row for each rank. */
static bool direct_by(const struct lemon_plan_hints *hints, int64_t base, int ranks, int rows,
                      int inner, int site)
{
    struct lemon_plan plan;
    struct lemon_grid grid;
    lemon_grid_init(&grid, 2, site, (int[]){rows, inner * ranks}, (int[]){1, ranks}, NULL);
    lemon_plan_init(&plan, &grid, base, hints);
    return plan.direct;
}

static bool direct(int ranks, int rows, int inner, int site)
{
    return direct_by(&(struct lemon_plan_hints){.stripe = MIB}, 144, ranks, rows, inner, site);
}

/* With a known stripe, runs must be long compared with it, or be stripes. */
TEST(test_direct_with_stripes)
{
    const struct lemon_plan_hints known = {.stripe = MIB, .striped = true};
    assert_true(direct(4, 100, (int)MIB, 1));
    assert_false(direct_by(&known, 144, 4, 100, (int)MIB, 1));
    assert_true(direct_by(&known, 7 * MIB, 4, 100, (int)MIB, 1));
    assert_false(direct_by(&known, 7 * MIB, 4, 100, (int)MIB + 1, 1));
    assert_true(direct_by(&known, 144, 4, 100, 4 * (int)MIB, 1));
    assert_true(direct_by(&known, 144, 4, 1, 300 * (int)KIB, 1)); /* one run */
    assert_false(direct_by(&known, 0, 4, 100, 300 * (int)KIB, 1));
}

TEST(test_direct_where_runs_are_long)
{
    assert_true(direct(1, 100, 1, 1)); /* one run */
    assert_true(direct(4, 1, 1, 1));
    assert_true(direct(4, 100, 16 * (int)MIB, 1));
    assert_true(direct(4, 100, 3 * (int)MIB, 1024));
    assert_false(direct(2, 2, 1, 1));
    assert_false(direct(4, 100, 4 * (int)KIB, 1));
    assert_false(direct(4, 1 << 30, 4 * (int)KIB, 1));
}

static bool has_short_runs(const struct lattice *lattice)
{
    for (int rank = 0; rank < lattice->ranks; rank++) {
        int64_t run = lemon_box_run_bytes(&lattice->boxes[rank]);
        if (run && run < 256 * KIB && run < lemon_box_bytes(&lattice->boxes[rank]))
            return true;
    }
    return false;
}

static int64_t most_runs(const struct lattice *lattice)
{
    int64_t most = 1;
    for (int rank = 0; rank < lattice->ranks; rank++) {
        int64_t run = lemon_box_run_bytes(&lattice->boxes[rank]);
        int64_t runs = run ? lemon_box_bytes(&lattice->boxes[rank]) / run : 0;
        most = runs > most ? runs : most;
    }
    return most;
}

TEST(test_direct_never_means_many_short_runs)
{
    for (int i = chance_times(3000); i > 0; i--) {
        struct lattice lattice;
        struct lemon_plan plan;
        struct lemon_plan_hints hints = hints_by_chance();
        lattice_by_chance(&lattice, 3000, i % 2 ? 100 : 100000);
        lemon_plan_init(&plan, &lattice.division, 0, &hints);
        assert_int_equal(plan.direct, !has_short_runs(&lattice));
        assert_int_equal(lemon_grid_max_runs(&lattice.division), most_runs(&lattice));
    }
}

/* ---- lattices larger than memory ---- */

/* At any offset, the bytes of the boxes before it add up to the offset. */
static void check_before(const struct lemon_grid *grid, int64_t at)
{
    int64_t sum = 0, ranks = lemon_grid_ranks(grid);
    for (int64_t rank = 0; rank < ranks; rank++) {
        struct lemon_box box;
        lemon_grid_get_box(grid, rank, &box);
        sum += lemon_box_bytes_before(&box, at);
    }
    assert_int_equal(sum, at);
}

/* The first byte of a run belongs to the box, the one before it does not. */
static void check_run(const struct lemon_grid *grid, int64_t rank)
{
    struct lemon_box box;
    lemon_grid_get_box(grid, rank, &box);
    int64_t run_bytes = lemon_box_run_bytes(&box), runs = lemon_box_bytes(&box) / run_bytes;
    int64_t run = (int64_t)chance_below((uint64_t)runs);
    int64_t at = lemon_box_run_offset(&box, run_bytes, run);
    assert_int_equal(lemon_box_bytes_before(&box, at), run * run_bytes);
    assert_int_equal(lemon_box_bytes_before(&box, at + run_bytes), (run + 1) * run_bytes);
    assert_int_equal(lemon_box_bytes_before(&box, at + 1), run * run_bytes + 1);
    if (at > 0 && run > 0)
        assert_int_equal(lemon_box_bytes_before(&box, at - 1), run * run_bytes);
}

TEST(test_an_exabyte_on_4096_ranks)
{
    struct lemon_grid grid;
    struct lemon_plan_hints hints = {.stripe = 3 * MIB};
    struct lemon_plan plan;
    lemon_grid_init(&grid, 4, 576, (int[]){40000, 4001, 8191, 2000}, (int[]){16, 16, 4, 4},
                    NULL);
    int64_t bytes = lemon_grid_bytes(&grid);
    assert_true(bytes > INT64_C(1) << 60);
    for (int i = 0; i < 100; i++)
        check_before(&grid, (int64_t)chance_below((uint64_t)bytes + 1));
    check_before(&grid, bytes);
    for (int i = 0; i < 1000; i++)
        check_run(&grid, (int64_t)chance_below(4096));
    lemon_plan_init(&plan, &grid, 1064, &hints);
    assert_true(plan.direct);
    struct marks marks = {0};
    for (int i = 0; i < 10000; i++)
        check_round(&plan, &hints, (int64_t)chance_below((uint64_t)plan.aggregators),
                    (int64_t)chance_below((uint64_t)plan.rounds), &marks);
}

static void check_huge(int dims, const int *lattice, const int *parts, int64_t site_bytes,
                       const struct lemon_plan_hints *hints)
{
    struct lemon_grid grid;
    struct lemon_plan plan;
    lemon_grid_init(&grid, dims, site_bytes, lattice, parts, NULL);
    lemon_plan_init(&plan, &grid, (INT64_C(1) << 40) + 24, hints);
    check_plan(&plan, hints, NULL);
}

TEST(test_terabytes_round_by_round)
{
    check_huge(4, (int[]){256, 129, 128, 512}, (int[]){3, 5, 1, 7}, 576,
               &(struct lemon_plan_hints){.stripe = MIB, .aggregators = 100});
    check_huge(4, (int[]){256, 129, 128, 512}, (int[]){3, 5, 2, 7}, 576,
               &(struct lemon_plan_hints){.stripe = 7 * MIB});
    check_huge(4, (int[]){192, 96, 96, 96}, (int[]){16, 16, 16, 16}, 576,
               &(struct lemon_plan_hints){.stripe = MIB});
    check_huge(4, (int[]){192, 96, 96, 96}, (int[]){8, 8, 8, 8}, 576,
               &(struct lemon_plan_hints){.stripe = GIB});
    check_huge(
        2, (int[]){1 << 20, 64}, (int[]){1, 64}, 65536,
        &(struct lemon_plan_hints){.stripe = MIB, .round_bytes = 100 * MIB, .aggregators = 7});
}

static int64_t messages(const struct lemon_schedule *schedule)
{
    int64_t count = 0;
    for (int64_t i = 0; i < schedule->part_count; i++)
        count += i == 0 || schedule->parts[i].round != schedule->parts[i - 1].round ||
                 schedule->parts[i].aggregator != schedule->parts[i - 1].aggregator;
    return count;
}

/* 96^3 x 192 on 65,536 ranks, compared with the exchange in rows of MPICH's issue 7935, where a
 * rank sends one message for each of its 12 time slices. */
TEST(test_no_more_messages_than_an_exchange_in_rows)
{
    struct lemon_grid grid;
    struct lemon_plan plan;
    struct lemon_plan_hints hints = {.stripe = MIB};
    const int64_t extent = 6 * 96 * 96 * 576;
    int64_t sum = 0, extents = 0;
    lemon_grid_init(&grid, 4, 576, (int[]){192, 96, 96, 96}, (int[]){16, 16, 16, 16}, NULL);
    lemon_plan_init(&plan, &grid, 144, &hints);
    assert_false(plan.direct);
    for (int64_t rank = 0; rank < plan.ranks; rank++) {
        struct lemon_schedule schedule;
        struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX];
        assert_int_equal(lemon_schedule_init(&schedule, &plan, rank), 0);
        assert_in_range(messages(&schedule), 1, 12 + 1); /* one more at ends of extents */
        sum += messages(&schedule);
        for (int64_t round = 0; schedule.aggregator >= 0 && round < plan.rounds; round++)
            for (int n = lemon_plan_round(&plan, schedule.aggregator, round, pieces);
                 n-- > 0;) {
                assert_true(pieces[n].to - pieces[n].from > extent - hints.stripe);
                extents++;
            }
        lemon_schedule_release(&schedule);
    }
    assert_true(sum < 12 * plan.ranks * 6 / 10);
    assert_int_equal(plan.bytes / extents, extent);
}

/* ---- without a shape ---- */

TEST(test_shares_partition_the_bytes)
{
    for (int i = chance_times(3000); i > 0; i--) {
        struct lemon_file_domains share;
        struct lemon_plan_hints hints = hints_by_chance();
        int ranks = 1 + (int)chance_below(40);
        int64_t bytes = (int64_t)chance_below(i % 2 ? 3000 : UINT64_C(1) << 40);
        int64_t base = (int64_t)chance_below(100000), next = 0;
        lemon_file_domains_init(&share, bytes, ranks, base, &hints);
        assert_true(share.aggregators >= 1 && share.aggregators <= ranks);
        assert_true(hints.aggregators == 0 || share.aggregators <= hints.aggregators);
        assert_true(share.bytes_each > 0 && share.bytes_each % hints.stripe == 0);
        for (int aggregator = 0; aggregator < share.aggregators; aggregator++) {
            int64_t from, to;
            lemon_file_domains_range(&share, aggregator, &from, &to);
            assert_int_equal(from, next);
            assert_true(from <= to && to - from <= share.bytes_each);
            assert_true(to == 0 || to == bytes || (base + to) % hints.stripe == 0);
            next = to;
        }
        assert_int_equal(next, bytes);
    }
}
