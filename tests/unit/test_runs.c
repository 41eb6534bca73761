/* test_runs.c - whatever ranks have, the movers' turns are all bytes, each once */
#include "lattice.h"

#include "runs.h"

#define MIB (INT64_C(1) << 20)

static struct lemon_plan_hints hints_by_chance(void)
{
    return (struct lemon_plan_hints){
        .stripe = 1 + (int64_t)chance_below(chance_below(2) ? 50 : 4 << 20),
        .movers = chance_below(2) ? (int64_t)chance_below(30) : 0,
        .round =
            chance_below(2) ? 1 + (int64_t)chance_below(chance_below(2) ? 2000 : 1 << 30) : 0,
    };
}

static void test_turns_are_all_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < chance_times(3000); i++) {
        struct lemon_plan_hints hints = hints_by_chance();
        int64_t bytes = (int64_t)chance_below(chance_below(2) ? 3000 : 1 << 28);
        int64_t ranks = 1 + (int64_t)chance_below(40), at = 0;
        struct lemon_runs_plan plan;
        lemon_runs_plan_make(&plan, bytes, ranks, (int64_t)chance_below(1 << 20), &hints);
        if (plan.turns > 3000)
            continue; /* a byte at a time */
        for (int64_t mover = 0; mover < plan.share.movers; mover++)
            for (int64_t turn = 0; turn < plan.turns; turn++) {
                int64_t from, to;
                lemon_runs_turn(&plan, mover, turn, &from, &to);
                if (from == to)
                    continue;
                assert_int_equal(from, at);
                assert_true(to > from && to - from <= plan.turn);
                assert_true(to == bytes || (plan.share.base + to) % hints.stripe == 0);
                assert_int_equal(lemon_runs_owner(&plan, from), mover);
                assert_int_equal(lemon_runs_owner(&plan, to - 1), mover);
                at = to;
            }
        assert_int_equal(at, bytes);
    }
}

static void test_movers_are_spread(void **state)
{
    (void)state;
    for (int i = 0; i < chance_times(3000); i++) {
        struct lemon_plan_hints hints = hints_by_chance();
        int64_t ranks = 1 + (int64_t)chance_below(300), movers = 0;
        struct lemon_runs_plan plan;
        lemon_runs_plan_make(&plan, (int64_t)chance_below(1 << 30), ranks, 0, &hints);
        for (int64_t rank = 0; rank < ranks; rank++) {
            int64_t mover = lemon_runs_mover(&plan, rank);
            if (mover < 0)
                continue;
            assert_int_equal(mover, movers++);
            assert_int_equal(lemon_runs_rank(&plan, mover), rank);
        }
        assert_int_equal(movers, plan.share.movers);
        assert_true(hints.movers == 0 || movers <= hints.movers);
    }
}

static void test_little_has_few_movers(void **state)
{
    struct lemon_plan_hints hints = {.stripe = MIB};
    struct lemon_runs_plan plan;
    (void)state;
    lemon_runs_plan_make(&plan, 0, 1000, 7, &hints);
    assert_int_equal(plan.turns, 0);
    lemon_runs_plan_make(&plan, 4 * MIB, 1000, 7, &hints);
    assert_int_equal(plan.share.movers, 1);
    lemon_runs_plan_make(&plan, 400 * MIB, 1000, 0, &hints);
    assert_int_equal(plan.share.movers, 100);
    lemon_runs_plan_make(&plan, 4000 * MIB, 16, 0, &hints);
    assert_int_equal(plan.share.movers, 16);
    assert_int_equal(plan.turn, 8 * MIB);
}

static void test_streams_are_the_runs(void **state)
{
    (void)state;
    for (int i = 0; i < chance_times(2000); i++) {
        struct lemon_run run[20];
        int64_t runs = (int64_t)chance_below(20), end = 0, bytes = 0;
        for (int64_t k = 0; k < runs; k++) {
            run[k].offset = end + (int64_t)chance_below(5);
            run[k].bytes = 1 + (int64_t)chance_below(9);
            end = run[k].offset + run[k].bytes;
        }
        int64_t all = lemon_runs_count(run, runs);
        for (int64_t at = 0; at <= end + 2; at++) {
            int64_t k = lemon_runs_find(run, runs, at);
            assert_int_equal(lemon_runs_before(run, runs, at), bytes);
            assert_true(k == runs || run[k].offset + run[k].bytes > at);
            assert_true(k == 0 || run[k - 1].offset + run[k - 1].bytes <= at);
            bytes += k < runs && run[k].offset <= at;
        }
        assert_int_equal(bytes, all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_are_all_bytes),
        cmocka_unit_test(test_movers_are_spread),
        cmocka_unit_test(test_little_has_few_movers),
        cmocka_unit_test(test_streams_are_the_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
