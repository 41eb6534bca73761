/* test_runs.c - arbitrary ranges: each byte belongs to one aggregator and one round */
#include "lattice.h"

#include "runs_plan.h"

struct request {
    struct lemon_plan_hints hints;
    int64_t bytes, ranks, base;
};

static int64_t up_to(uint64_t n)
{
    return 1 + (int64_t)chance_below(n);
}

static struct request make_request(void)
{
    struct request a = {.ranks = up_to(40), .base = (int64_t)chance_below(1 << 20)};
    a.hints.stripe = INT64_C(1) << chance_below(22);
    a.hints.aggregators = chance_below(3) ? 0 : up_to(60);
    a.hints.round_bytes = chance_below(3) ? 0 : up_to(1 << 22);
    a.bytes = (int64_t)chance_below(UINT64_C(1) << (10 + chance_below(24)));
    return a;
}

TEST(test_each_byte_has_one_aggregator)
{
    for (int i = 0; i < chance_times(2000); i++) {
        struct request a = make_request();
        struct lemon_runs_plan plan;
        int64_t reached = 0;
        lemon_runs_plan_init(&plan, a.bytes, a.ranks, a.base, &a.hints);
        assert_in_range(plan.domains.aggregators, 1, a.ranks);
        for (int64_t aggregator = 0; aggregator < plan.domains.aggregators; aggregator++) {
            for (int64_t round = 0; round < plan.rounds; round++) {
                int64_t from, to;
                lemon_runs_round(&plan, aggregator, round, &from, &to);
                assert_true(from <= to && to - from <= plan.round_bytes);
                if (from == to)
                    continue;
                assert_int_equal(from, reached);
                assert_int_equal(lemon_runs_find_aggregator(&plan, from), aggregator);
                assert_int_equal(lemon_runs_find_aggregator(&plan, to - 1), aggregator);
                assert_true(from == 0 || (a.base + from) % a.hints.stripe == 0);
                reached = to;
            }
        }
        assert_int_equal(reached, a.bytes);
    }
}

TEST(test_aggregators_are_ranks)
{
    for (int i = 0; i < chance_times(2000); i++) {
        struct request a = make_request();
        struct lemon_runs_plan plan;
        int64_t aggregators = 0;
        lemon_runs_plan_init(&plan, a.bytes, a.ranks, a.base, &a.hints);
        for (int64_t rank = 0; rank < a.ranks; rank++) {
            int64_t aggregator = lemon_runs_aggregator(&plan, rank);
            aggregators += aggregator >= 0;
            if (aggregator >= 0)
                assert_int_equal(lemon_runs_aggregator_rank(&plan, aggregator), rank);
        }
        assert_int_equal(aggregators, plan.domains.aggregators);
    }
}

TEST(test_few_bytes_have_few_aggregators)
{
    const int64_t mib = 1 << 20;
    struct lemon_plan_hints hints = {.stripe = mib};
    struct lemon_runs_plan plan;
    lemon_runs_plan_init(&plan, 0, 1000, 7, &hints);
    assert_int_equal(plan.rounds, 0);
    lemon_runs_plan_init(&plan, 4 * mib, 1000, 7, &hints);
    assert_int_equal(plan.domains.aggregators, 1);
    lemon_runs_plan_init(&plan, 400 * mib, 1000, 0, &hints);
    assert_int_equal(plan.domains.aggregators, 100);
    lemon_runs_plan_init(&plan, 4000 * mib, 16, 0, &hints);
    assert_int_equal(plan.domains.aggregators, 16);
    assert_int_equal(plan.round_bytes, 8 * mib);
}

/* Compares with a table of all bytes. */
TEST(test_streams)
{
    enum {
        BYTES = 300,
        RUNS = 20,
    };
    for (int i = 0; i < chance_times(1000); i++) {
        struct lemon_run run[RUNS];
        int64_t runs = 0, at = (int64_t)chance_below(10), before[BYTES + 1] = {0};
        bool has[BYTES] = {false};
        for (; runs < RUNS; runs++) {
            int64_t n = up_to(12);
            at += (int64_t)chance_below(6);
            if (at + n > BYTES)
                break;
            run[runs] = (struct lemon_run){at, n, 0};
            memset(has + at, 1, (size_t)n);
            at += n;
        }
        for (int64_t b = 0; b < BYTES; b++)
            before[b + 1] = before[b] + has[b];
        assert_int_equal(lemon_runs_set_before(run, runs), before[BYTES]);
        for (int64_t b = 0; b <= BYTES; b++) {
            int64_t found = lemon_runs_find(run, runs, b);
            assert_int_equal(lemon_runs_bytes_before(run, runs, b), before[b]);
            assert_true(found == runs || run[found].offset + run[found].bytes > b);
            assert_true(found == 0 || run[found - 1].offset + run[found - 1].bytes <= b);
        }
    }
}

/* Each rank writes its own ranges if its runs are 4 MiB or more, the stripe is unknown, and the
 * requested number of aggregators is not less than the number of ranks. */
TEST(test_long_runs)
{
    const int64_t least = 4 << 20;
    struct lemon_plan_hints hints = {.stripe = 1 << 20};
    struct lemon_run run[2] = {{0, least, 0}, {3 * least, least, 0}};
    struct lemon_runs_plan plan;
    lemon_runs_plan_init(&plan, 4 * least, 3, 144, &hints);
    assert_true(lemon_runs_can_write_directly(&plan, run, 2, &hints));
    assert_true(lemon_runs_can_write_directly(&plan, run, 0, &hints));
    hints.aggregators = 3;
    assert_true(lemon_runs_can_write_directly(&plan, run, 2, &hints));
    hints.aggregators = 2;
    assert_false(lemon_runs_can_write_directly(&plan, run, 2, &hints));
    hints.aggregators = 0;
    hints.striped = true;
    assert_false(lemon_runs_can_write_directly(&plan, run, 2, &hints));
    hints.striped = false;
    run[1].bytes--;
    assert_false(lemon_runs_can_write_directly(&plan, run, 2, &hints));
    assert_true(lemon_runs_can_write_directly(&plan, run, 1, &hints));
}

TEST(test_homes)
{
    assert_int_equal(lemon_runs_items_per_home(16384, 16384), 128);
    assert_int_equal(lemon_runs_items_per_home(4096, 4), 1024);
    assert_int_equal(lemon_runs_items_per_home(1, 1000), 1);
    for (int i = 0; i < chance_times(2000); i++) {
        int64_t ranks = up_to(1 << 20), items = up_to(UINT64_C(1) << chance_below(41));
        int64_t each = lemon_runs_items_per_home(items, ranks);
        assert_in_range(each, 1, items);
        assert_true((items - 1) / each < ranks);
    }
}
