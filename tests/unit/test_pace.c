/* test_pace.c - how many threads wait for quick requests: what took less time in a trial */
#include "pace.h"
#include "unit.h"

#include <string.h>

static struct limefs_pace pace;
static double now;

/* As many requests as one trial takes, each so many us after the one before; how many threads
 * more were called for. */
static unsigned trial(double apart)
{
    unsigned more = 0;
    for (int i = 0; i < LIMEFS_PACE_TRIAL; i++)
        more += limefs_pace_request(&pace, now += apart * 1e-6);
    return more;
}

static int begin(void **state)
{
    (void)state;
    memset(&pace, 0, sizeof pace);
    now = 1000;
    limefs_pace_request(&pace, now); /* after a pause: nothing of a trial */
    assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_FEW);
    return 0;
}

static void test_many_are_faster(void **state)
{
    (void)state;
    assert_int_equal(trial(50), LIMEFS_PACE_MANY - LIMEFS_PACE_FEW);
    assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_MANY);
    for (int i = 0; i < LIMEFS_PACE_REST; i++) {
        assert_int_equal(trial(26), 0);
        assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_MANY);
    }
    trial(26); /* few are tried once more */
    assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_FEW);
    assert_int_equal(trial(50), LIMEFS_PACE_MANY - LIMEFS_PACE_FEW);
}

static void test_few_are_faster(void **state)
{
    (void)state;
    trial(20);
    assert_int_equal(trial(26), 0);
    for (int i = 0; i < LIMEFS_PACE_REST; i++) {
        assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_FEW);
        assert_int_equal(trial(20), 0);
    }
    assert_int_equal(trial(20), LIMEFS_PACE_MANY - LIMEFS_PACE_FEW);
}

/* Many must gain an eighth. */
static void test_little_gain(void **state)
{
    (void)state;
    trial(40);
    trial(36);
    assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_FEW);
}

/* What was better is slower now than the other one was: both are tried at once. */
static void test_slower_later(void **state)
{
    (void)state;
    trial(20);
    trial(26);
    assert_int_equal(trial(32), 0); /* less than a quarter more than 26 */
    assert_int_equal(trial(34), 0);
    assert_int_equal(trial(45), LIMEFS_PACE_MANY - LIMEFS_PACE_FEW);
    trial(26);
    assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_MANY);
    trial(60);
    assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_FEW);
}

/* Between two commands of a user nothing is measured, nor where each request takes long. */
static void test_pauses(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(trial(3000), 0);
    for (int i = 1; i < LIMEFS_PACE_TRIAL; i++) {
        assert_int_equal(limefs_pace_request(&pace, now += 50e-6), 0);
        assert_int_equal(limefs_pace_request(&pace, now += 1), 0);
    }
    assert_int_equal(limefs_pace_request(&pace, now += 50e-6),
                     LIMEFS_PACE_MANY - LIMEFS_PACE_FEW);
    trial(26);
    assert_int_equal(limefs_pace_threads(&pace), LIMEFS_PACE_MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_many_are_faster, begin),
        cmocka_unit_test_setup(test_few_are_faster, begin),
        cmocka_unit_test_setup(test_little_gain, begin),
        cmocka_unit_test_setup(test_slower_later, begin),
        cmocka_unit_test_setup(test_pauses, begin),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
