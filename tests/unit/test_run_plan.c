/* test_run_plan.c - what limefs-run asks a job for ahead of its readers */
#include "unit.h"
#include "plan.h"

#define MIB UINT64_C(1048576)
#define MS  UINT64_C(1000000)

static struct limefs_run_plan plan;

static struct limefs_run_want want_at(uint64_t at, uint64_t end, uint64_t run)
{
    static uint64_t now = 1000 * MS;
    now += MS;
    return (struct limefs_run_want){.at = at, .end = end, .run = run, .now = now};
}

/* As the caller does, with a job that answers at once; how many were asked for. Nothing before
 * `warm` has to be fetched. */
static int ask(const struct limefs_run_want *want, uint64_t warm)
{
    struct limefs_run_course *course = limefs_run_plan_course(&plan, want);
    uint64_t to;
    int asked = 0;
    while (course && limefs_run_plan_next(&plan, course, want, &to)) {
        uint64_t from = course->ahead;
        assert_true(from % 4096 == 0 && from < to && to <= want->end);
        assert_true(to % 4096 == 0 || to == want->end);
        assert_true(from / plan.extent == (to - 1) / plan.extent);
        if (to <= warm) {
            limefs_run_plan_pass(&plan, course, to);
            continue;
        }
        int slot = limefs_run_plan_take(&plan, course, to, want->now);
        if (slot < 0)
            break;
        assert_true(plan.slot[slot].from == from && plan.slot[slot].to == to);
        plan.slot[slot].state = LIMEFS_RUN_SLOT_READY;
        asked++;
    }
    return asked;
}

/* Reads [at, end) in blocks; each is in a slot. The bytes that were asked for. */
static uint64_t stream(int file, uint64_t at, uint64_t end, uint64_t block, uint64_t run)
{
    uint64_t fetched = 0;
    while (at < end) {
        uint64_t n = block < end - at ? block : end - at, done = 0;
        run += n;
        while (done < n) {
            struct limefs_run_want want = want_at(at + done, end, run);
            want.file = file;
            bool had[LIMEFS_RUN_SLOTS_MAX];
            for (int i = 0; i < LIMEFS_RUN_SLOTS_MAX; i++)
                had[i] = plan.slot[i].asked == want.now;
            ask(&want, 0);
            for (int i = 0; i < LIMEFS_RUN_SLOTS_MAX; i++)
                if (plan.slot[i].asked == want.now && !had[i])
                    fetched += plan.slot[i].to - plan.slot[i].from;
            int slot = limefs_run_plan_find(&plan, file, at + done);
            assert_true(slot >= 0);
            uint64_t left = plan.slot[slot].to - at - done;
            uint64_t piece = n - done < left ? n - done : left;
            limefs_run_plan_went(&plan, file, at + done, at + done + piece);
            done += piece;
        }
        at += n;
    }
    return fetched;
}

static void windows(void **unused)
{
    (void)unused;
    static const uint64_t all[][3] = {
        {32 * MIB, 4, 32 * MIB},     {UINT64_MAX, 4, 32 * MIB}, {MIB, 8, MIB}, {0, 8, MIB},
        {20 * MIB + 1, 6, 20 * MIB}, {16 * MIB, 8, 16 * MIB},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        limefs_run_plan_begin(&plan, all[i][0]);
        assert_int_equal(plan.slots, all[i][1]);
        assert_int_equal(plan.extent, all[i][2]);
        assert_true(limefs_run_plan_window(&plan) <= LIMEFS_RUN_WINDOW_MAX);
    }
}

/* Every byte once, but for what is left of a page or extent. */
static void a_stream(void **unused)
{
    static const uint64_t blocks[] = {16384, MIB, 5 * MIB + 7, 300 * MIB, 100001};
    (void)unused;
    for (size_t i = 0; i < COUNT(blocks); i++) {
        limefs_run_plan_begin(&plan, 32 * MIB);
        uint64_t begin = 4 * MIB + 144, end = 700 * MIB + 99;
        uint64_t fetched = stream(0, begin, end, blocks[i], 4 * MIB);
        assert_true(fetched >= end - begin && fetched < end - begin + 8192);
    }
}

/* Who stops soon has had as much fetched in vain as it has read, and a load. */
static void no_further_than_it_has_come(void **unused)
{
    (void)unused;
    limefs_run_plan_begin(&plan, 32 * MIB);
    for (uint64_t at = 4 * MIB; at < 64 * MIB; at += MIB) {
        struct limefs_run_want want = want_at(at, 1000 * MIB, at);
        ask(&want, 0);
        struct limefs_run_course *course = limefs_run_plan_course(&plan, &want);
        assert_true(course->ahead >= at + MIB && course->ahead < 2 * at + 32 * MIB);
        limefs_run_plan_went(&plan, 0, at, at + MIB);
    }
}

static void streams_share(void **unused)
{
    (void)unused;
    limefs_run_plan_begin(&plan, 4 * MIB);
    for (uint64_t at = 0; at < 200 * MIB; at += MIB)
        for (int i = 0; i < 8; i++)
            stream(i % 4, at + i * 1000 * MIB, at + i * 1000 * MIB + MIB, MIB, at + 4 * MIB);
    struct limefs_run_want want = want_at(9999 * MIB, 10999 * MIB, 64 * MIB);
    assert_int_equal(ask(&want, 0), 1); /* in the place of one that has been passed */
}

/* What is held, loading or wanted is not taken. */
static void slots_are_kept(void **unused)
{
    (void)unused;
    limefs_run_plan_begin(&plan, 32 * MIB);
    struct limefs_run_want want = want_at(0, 1000 * MIB, 500 * MIB);
    assert_int_equal(ask(&want, 0), 4);
    int first = limefs_run_plan_find(&plan, 0, 0);
    atomic_fetch_add(&plan.slot[first].holds, 1);
    limefs_run_plan_went(&plan, 0, 0, 70 * MIB);
    want = want_at(70 * MIB, 1000 * MIB, 500 * MIB);
    ask(&want, 0);
    assert_int_equal(limefs_run_plan_find(&plan, 0, 0), first);
    atomic_fetch_sub(&plan.slot[first].holds, 1);
    plan.slot[first].state = LIMEFS_RUN_SLOT_LOADING;
    want = want_at(130 * MIB, 1000 * MIB, 500 * MIB);
    ask(&want, 0);
    assert_int_equal(limefs_run_plan_find(&plan, 0, 0), first);
    assert_false(limefs_run_plan_is_idle(&plan, 0, want.now + 10000 * MS));
    plan.slot[first].state = LIMEFS_RUN_SLOT_READY;
    assert_false(limefs_run_plan_is_idle(&plan, 0, want.now));
    assert_true(limefs_run_plan_is_idle(&plan, 0, want.now + 10000 * MS));
    assert_true(limefs_run_plan_is_idle(&plan, 1, want.now));
    limefs_run_plan_forget(&plan, 0);
    assert_int_equal(limefs_run_plan_find(&plan, 0, 140 * MIB), -1);
}

/* Who shares a position, and is late, does not begin again; who jumps back does. */
static void late_reads(void **unused)
{
    (void)unused;
    limefs_run_plan_begin(&plan, 4 * MIB);
    stream(0, 0, 100 * MIB, MIB, 4 * MIB);
    for (int i = 0; i < LIMEFS_RUN_SLOTS_MAX; i++)
        plan.slot[i].state = LIMEFS_RUN_SLOT_EMPTY;
    struct limefs_run_want want = want_at(99 * MIB, 200 * MIB, 99 * MIB);
    assert_null(limefs_run_plan_course(&plan, &want));
    want = want_at(90 * MIB, 200 * MIB, 99 * MIB);
    assert_true(ask(&want, 0) > 0);
    assert_true(limefs_run_plan_find(&plan, 0, 90 * MIB) >= 0);
}

/* A reader far behind another has a course of its own; what came for one is kept for a while,
 * though the other goes on to fetch. */
static void readers_apart(void **unused)
{
    (void)unused;
    limefs_run_plan_begin(&plan, 4 * MIB);
    struct limefs_run_want ahead = want_at(28 * MIB, 200 * MIB, 99 * MIB),
                           behind = want_at(20 * MIB, 200 * MIB, 4 * MIB);
    struct limefs_run_course *one = limefs_run_plan_course(&plan, &ahead);
    struct limefs_run_course *other = limefs_run_plan_course(&plan, &behind);
    assert_ptr_not_equal(one, other);
    int slot = limefs_run_plan_take(&plan, other, 24 * MIB, behind.now);
    assert_true(slot >= 0);
    limefs_run_plan_loaded(&plan.slot[slot], behind.now);
    limefs_run_plan_forget(&plan, 1);
    other->since = 0; /* asleep: its slot is not wanted */
    ahead.now += 50 * MS;
    ask(&ahead, 0);
    assert_int_equal(limefs_run_plan_find(&plan, 0, 20 * MIB), slot);
    ahead = want_at(60 * MIB, 200 * MIB, 99 * MIB);
    ahead.now += 200 * MS;
    ask(&ahead, 0);
    assert_int_equal(limefs_run_plan_find(&plan, 0, 20 * MIB), -1);
}

/* A second reader goes on behind what the first one has fetched. */
static void another_ones_slot(void **unused)
{
    (void)unused;
    limefs_run_plan_begin(&plan, 8 * MIB);
    struct limefs_run_want want = want_at(0, 100 * MIB, 16 * MIB);
    ask(&want, 0);
    limefs_run_plan_went(&plan, 0, 0, 4 * MIB);
    struct limefs_run_want other = want_at(MIB, 100 * MIB, 4 * MIB);
    ask(&other, 0);
    for (unsigned i = 0; i < plan.slots; i++)
        for (unsigned j = 0; j < i; j++)
            assert_true(plan.slot[i].state == LIMEFS_RUN_SLOT_EMPTY ||
                        plan.slot[j].state == LIMEFS_RUN_SLOT_EMPTY ||
                        plan.slot[i].from >= plan.slot[j].to ||
                        plan.slot[j].from >= plan.slot[i].to);
}

static void what_is_in_memory(void **unused)
{
    (void)unused;
    limefs_run_plan_begin(&plan, 32 * MIB);
    struct limefs_run_want want = want_at(5 * MIB, 1000 * MIB, 100 * MIB);
    ask(&want, 60 * MIB);
    assert_int_equal(limefs_run_plan_find(&plan, 0, 5 * MIB), -1);
    assert_true(limefs_run_plan_find(&plan, 0, 70 * MIB) >= 0);
    limefs_run_plan_begin(&plan, 32 * MIB);
    assert_int_equal(ask(&want, 1000 * MIB), 0);
    want = want_at(6 * MIB, 1000 * MIB, 100 * MIB);
    assert_int_equal(ask(&want, 1000 * MIB), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(a_stream),
        cmocka_unit_test(no_further_than_it_has_come),
        cmocka_unit_test(streams_share),
        cmocka_unit_test(slots_are_kept),
        cmocka_unit_test(late_reads),
        cmocka_unit_test(readers_apart),
        cmocka_unit_test(another_ones_slot),
        cmocka_unit_test(what_is_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
