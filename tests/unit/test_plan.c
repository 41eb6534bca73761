/* test_plan.c - whatever the geometry, the movers' windows are the lattice, each byte once */
#include "lattice.h"

#include "plan.h"

#define KIB INT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

static struct lemon_plan_hints hints_by_chance(void)
{
    return (struct lemon_plan_hints){
        .stripe = 1 + (int64_t)chance_below(chance_below(2) ? 50 : 5000),
        .movers = chance_below(2) ? (int64_t)chance_below(30) : 0,
        .round = chance_below(2)
                     ? (int64_t)chance_below(chance_below(2) ? 2000 : UINT64_C(4) << 30)
                     : 0,
    };
}

static int at_a_stripe(const struct lemon_plan *plan, int64_t at)
{
    return at == 0 || at == plan->bytes || (plan->base + at) % plan->stripe == 0;
}

static void check_numbers(const struct lemon_plan *plan, const struct lemon_plan_hints *hints,
                          int ranks, int64_t base, int64_t bytes)
{
    assert_int_equal(plan->ranks, ranks);
    assert_int_equal(plan->base, base);
    assert_int_equal(plan->bytes, bytes);
    assert_int_equal(plan->stripe, hints->stripe);
    assert_true(plan->movers >= 1 && plan->movers <= ranks);
    assert_true(hints->movers == 0 || plan->movers <= hints->movers);
    assert_true(plan->share > 0 && plan->share % plan->stripe == 0);
    assert_true(plan->round > 0 && plan->round % plan->stripe == 0);
    if (hints->round)
        assert_true(plan->round <= hints->round || plan->round == plan->stripe);
    assert_true(plan->round <= INT32_MAX); /* the count of a message */
}

/* All windows of a mover, one after another; returns where they end. */
static int64_t check_mover(const struct lemon_plan *plan, int mover, int64_t begin)
{
    int64_t from, to, first, last, next = begin, rounds = lemon_plan_rounds(plan);
    for (int64_t round = 0; round < rounds; round++) {
        lemon_plan_window(plan, mover, round, &from, &to);
        assert_true(from <= to && to - from <= plan->round);
        assert_int_equal(from, next);
        assert_true(at_a_stripe(plan, from) && at_a_stripe(plan, to));
        next = to;
    }
    lemon_plan_range(plan, mover, &first, &last);
    assert_int_equal(first, begin);
    assert_int_equal(last, next);
    assert_true(last - first <= plan->share);
    return next;
}

static void check_windows(const struct lemon_plan *plan)
{
    int64_t next = 0;
    for (int mover = 0; mover < plan->movers; mover++)
        next = check_mover(plan, mover, next);
    assert_int_equal(next, plan->bytes);
}

static void test_windows_partition_the_lattice(void **state)
{
    (void)state;
    for (int i = chance_times(3000); i > 0; i--) {
        struct lattice lattice;
        struct lemon_plan plan;
        struct lemon_plan_hints hints = hints_by_chance();
        int64_t base = (int64_t)chance_below(chance_below(2) ? 20000 : UINT64_C(1) << 62);
        lattice_by_chance(&lattice, 3000, 100);
        lemon_plan_make(&plan, lattice.boxes, lattice.ranks, base, &hints);
        check_numbers(&plan, &hints, lattice.ranks, base, lattice.bytes);
        check_windows(&plan);
    }
}

/* What the ranks give for a window fills it, and nothing is left over. */
static void test_the_parts_of_all_ranks_fill_each_window(void **state)
{
    (void)state;
    for (int i = chance_times(300); i > 0; i--) {
        struct lattice lattice;
        struct lemon_plan plan;
        struct lemon_plan_hints hints = hints_by_chance();
        int64_t given[LATTICE_RANKS] = {0}, from, to;
        lattice_by_chance(&lattice, 3000, 100);
        lemon_plan_make(&plan, lattice.boxes, lattice.ranks, 1064, &hints);
        for (int mover = 0; mover < plan.movers; mover++)
            for (int64_t round = 0; round < lemon_plan_rounds(&plan); round++) {
                int64_t sum = 0;
                lemon_plan_window(&plan, mover, round, &from, &to);
                for (int rank = 0; rank < lattice.ranks; rank++) {
                    int64_t at = lemon_box_before(&lattice.boxes[rank], from);
                    int64_t n = lemon_box_before(&lattice.boxes[rank], to) - at;
                    assert_int_equal(at, given[rank]);
                    given[rank] += n;
                    sum += n;
                }
                assert_int_equal(sum, to - from);
            }
        for (int rank = 0; rank < lattice.ranks; rank++)
            assert_int_equal(given[rank], lemon_box_bytes(&lattice.boxes[rank]));
    }
}

/* Ranks that compute it by themselves come to the same. */
static void test_a_plan_depends_on_its_arguments_only(void **state)
{
    (void)state;
    for (int i = chance_times(300); i > 0; i--) {
        struct lattice lattice, copy;
        struct lemon_plan plan, again;
        struct lemon_plan_hints hints = hints_by_chance();
        int64_t base = (int64_t)chance_below(100000);
        lattice_by_chance(&lattice, 3000, 100);
        memcpy(&copy, &lattice, sizeof copy);
        memset(&plan, 0x55, sizeof plan);
        memset(&again, 0xaa, sizeof again);
        lemon_plan_make(&plan, lattice.boxes, lattice.ranks, base, &hints);
        lemon_plan_make(&again, copy.boxes, copy.ranks, base, &hints);
        assert_int_equal(plan.direct, again.direct);
        assert_int_equal(plan.movers, again.movers);
        assert_int_equal(plan.share, again.share);
        assert_int_equal(plan.round, again.round);
        check_numbers(&again, &hints, lattice.ranks, base, lattice.bytes);
        assert_memory_equal(&lattice, &copy, sizeof copy);
    }
}

/* ---- direct, or through movers ---- */

/* A lattice of two dimensions, `inner` bytes of each of its rows for each rank. */
static bool direct(int ranks, int64_t rows, int64_t inner)
{
    struct lemon_plan plan;
    struct lemon_box boxes[LATTICE_RANKS];
    struct lemon_plan_hints hints = {.stripe = MIB};
    for (int rank = 0; rank < ranks; rank++)
        boxes[rank] = (struct lemon_box){.dims = 2,
                                         .extent = {rows, inner * ranks},
                                         .start = {0, inner * rank},
                                         .sites = {rows, inner},
                                         .site_bytes = 1};
    lemon_plan_make(&plan, boxes, ranks, 0, &hints);
    return plan.direct;
}

static void test_direct_where_runs_are_long(void **state)
{
    (void)state;
    assert_true(direct(1, 100, 1)); /* one run */
    assert_true(direct(4, 1, 1));
    assert_true(direct(4, 100, 16 * MIB));
    assert_true(direct(4, 100, 3 * GIB));
    assert_false(direct(2, 2, 1));
    assert_false(direct(4, 100, 4 * KIB));
    assert_false(direct(4, GIB, 4 * KIB));
}

static void test_direct_never_means_many_short_runs(void **state)
{
    (void)state;
    for (int i = chance_times(3000); i > 0; i--) {
        struct lattice lattice;
        struct lemon_plan plan;
        struct lemon_plan_hints hints = hints_by_chance();
        lattice_by_chance(&lattice, 3000, i % 2 ? 100 : 100000);
        lemon_plan_make(&plan, lattice.boxes, lattice.ranks, 0, &hints);
        for (int rank = 0; plan.direct && rank < lattice.ranks; rank++) {
            int64_t run = lemon_box_run_bytes(&lattice.boxes[rank]);
            assert_true(run == lemon_box_bytes(&lattice.boxes[rank]) || run >= 64 * KIB);
        }
    }
}

/* ---- lattices that no memory holds ---- */

struct huge {
    int ranks;
    int64_t bytes;
    struct lemon_box *boxes;
};

/* extent[] over grid[], slowest first. */
static struct huge huge_make(const int *grid, const int64_t *extent, int64_t site_bytes)
{
    struct huge huge = {.ranks = grid[0] * grid[1] * grid[2] * grid[3]};
    huge.boxes = calloc((size_t)huge.ranks, sizeof *huge.boxes);
    assert_non_null(huge.boxes);
    for (int rank = 0; rank < huge.ranks; rank++) {
        struct lemon_box *box = &huge.boxes[rank];
        box->dims = 4;
        box->site_bytes = site_bytes;
        for (int d = 3, left = rank; d >= 0; left /= grid[d], d--) {
            box->extent[d] = extent[d];
            lemon_box_split(extent[d], grid[d], left % grid[d], &box->start[d], &box->sites[d]);
        }
    }
    huge.bytes = lemon_box_lattice_bytes(&huge.boxes[0]);
    return huge;
}

/* At any place, what the boxes hold before it is all that there is before it. */
static void check_before(const struct huge *huge, int64_t at)
{
    int64_t sum = 0;
    for (int rank = 0; rank < huge->ranks; rank++)
        sum += lemon_box_before(&huge->boxes[rank], at);
    assert_int_equal(sum, at);
}

/* The byte that a run of a box begins with is the box's, the one before it is not. */
static void check_run(const struct lemon_box *box)
{
    int64_t run_bytes = lemon_box_run_bytes(box), runs = lemon_box_bytes(box) / run_bytes;
    int64_t run = (int64_t)chance_below((uint64_t)runs);
    int64_t at = lemon_box_run_offset(box, run_bytes, run);
    assert_int_equal(lemon_box_before(box, at), run * run_bytes);
    assert_int_equal(lemon_box_before(box, at + run_bytes), (run + 1) * run_bytes);
    assert_int_equal(lemon_box_before(box, at + 1), run * run_bytes + 1);
    if (at > 0 && run > 0)
        assert_int_equal(lemon_box_before(box, at - 1), run * run_bytes);
}

static void test_an_exabyte_on_4096_ranks(void **state)
{
    (void)state;
    static const int grid[] = {16, 16, 4, 4};
    static const int64_t extent[] = {40000, 4001, 8191, 2000};
    struct huge huge = huge_make(grid, extent, 576);
    struct lemon_plan_hints hints = {.stripe = 3 * MIB};
    struct lemon_plan plan;
    assert_true(huge.bytes > INT64_C(1) << 60);
    for (int i = 0; i < 100; i++)
        check_before(&huge, (int64_t)chance_below((uint64_t)huge.bytes + 1));
    check_before(&huge, huge.bytes);
    for (int i = 0; i < 1000; i++)
        check_run(&huge.boxes[chance_below((uint64_t)huge.ranks)]);
    lemon_plan_make(&plan, huge.boxes, huge.ranks, 1064, &hints);
    check_numbers(&plan, &hints, huge.ranks, 1064, huge.bytes);
    assert_int_equal(plan.movers, huge.ranks);
    int64_t next = 0, from, to, rounds = lemon_plan_rounds(&plan);
    for (int mover = 0; mover < plan.movers; mover++) {
        lemon_plan_range(&plan, mover, &from, &to);
        assert_int_equal(from, next);
        assert_true(at_a_stripe(&plan, to));
        next = to;
        for (int i = 0; i < 10; i++) {
            int64_t end, begin, round = (int64_t)chance_below((uint64_t)rounds);
            lemon_plan_window(&plan, mover, round, &begin, &end);
            assert_true(from <= begin && begin <= end && end <= to);
            assert_true(at_a_stripe(&plan, begin) && at_a_stripe(&plan, end));
        }
    }
    assert_int_equal(next, huge.bytes);
    free(huge.boxes);
}

static void test_terabytes_window_by_window(void **state)
{
    (void)state;
    static const int grid[] = {3, 5, 1, 7};
    static const int64_t extent[] = {256, 129, 128, 512};
    struct huge huge = huge_make(grid, extent, 576);
    struct lemon_plan_hints hints = {.stripe = MIB, .movers = 100};
    struct lemon_plan plan;
    assert_true(huge.bytes > INT64_C(1) << 40);
    lemon_plan_make(&plan, huge.boxes, huge.ranks, (INT64_C(1) << 40) + 24, &hints);
    check_numbers(&plan, &hints, huge.ranks, (INT64_C(1) << 40) + 24, huge.bytes);
    assert_false(plan.direct);
    check_windows(&plan);
    free(huge.boxes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_partition_the_lattice),
        cmocka_unit_test(test_the_parts_of_all_ranks_fill_each_window),
        cmocka_unit_test(test_a_plan_depends_on_its_arguments_only),
        cmocka_unit_test(test_direct_where_runs_are_long),
        cmocka_unit_test(test_direct_never_means_many_short_runs),
        cmocka_unit_test(test_an_exabyte_on_4096_ranks),
        cmocka_unit_test(test_terabytes_window_by_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
