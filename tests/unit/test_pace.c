/* test_pace.c - whether the thread that waits for quick requests sleeps */
#include "pace.h"
#include "unit.h"

#include <string.h>

static struct limefs_pace pace;
static double now;

/* As many requests as one trial takes, each so many us after the one before; true: the thread
 * watches from now on. */
static bool trial(double apart)
{
    for (int i = 0; i < LIMEFS_PACE_TRIAL; i++)
        limefs_pace_request(&pace, now += apart * 1e-6);
    return limefs_pace_watches(&pace);
}

static int begin(void **state)
{
    (void)state;
    memset(&pace, 0, sizeof pace);
    now = 1000;
    limefs_pace_request(&pace, now); /* after a pause: nothing of a trial */
    assert_false(limefs_pace_watches(&pace));
    return 0;
}

static void test_the_watch_is_faster(void **state)
{
    (void)state;
    assert_true(trial(50));
    for (int i = 0; i < LIMEFS_PACE_REST; i++)
        assert_true(trial(26));
    assert_false(trial(26)); /* sleep is tried once more */
    assert_true(trial(50));
}

static void test_sleep_is_faster(void **state)
{
    (void)state;
    assert_true(trial(20));
    assert_false(trial(26));
    for (int i = 0; i < LIMEFS_PACE_REST; i++)
        assert_false(trial(20));
    assert_true(trial(20));
}

/* The watch must gain a quarter. */
static void test_little_gain(void **state)
{
    (void)state;
    trial(40);
    assert_false(trial(31));
    begin(state);
    trial(40);
    assert_true(trial(29));
}

/* What was better is slower now than the other one was: both are tried at once. */
static void test_slower_later(void **state)
{
    (void)state;
    trial(20);
    trial(26);
    assert_false(trial(32)); /* less than a quarter more than 26 */
    assert_false(trial(34));
    assert_true(trial(45));
    assert_true(trial(26));
    assert_false(trial(60));
}

/* Between two commands of a user nothing is measured, nor where each request takes long. */
static void test_pauses(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_false(trial(3000));
    for (int i = 1; i < LIMEFS_PACE_TRIAL; i++) {
        limefs_pace_request(&pace, now += 50e-6);
        limefs_pace_request(&pace, now += 1);
        assert_false(limefs_pace_watches(&pace));
    }
    limefs_pace_request(&pace, now += 50e-6);
    assert_true(limefs_pace_watches(&pace));
    assert_true(trial(26));
}

/* Nobody is on the watch for a program that asks now and then. */
static void test_now_and_then(void **state)
{
    (void)state;
    trial(50);
    assert_true(trial(26));
    assert_false(trial(3000));
    limefs_pace_request(&pace, now += 26e-6);
    assert_true(limefs_pace_watches(&pace));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_watch_is_faster, begin),
        cmocka_unit_test_setup(test_sleep_is_faster, begin),
        cmocka_unit_test_setup(test_little_gain, begin),
        cmocka_unit_test_setup(test_slower_later, begin),
        cmocka_unit_test_setup(test_pauses, begin),
        cmocka_unit_test_setup(test_now_and_then, begin),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
