/* suite.h - main() that runs each test that TEST() defines, in order
 *
 *     TEST(test_it) { ... }
 *     TEST_WITH(test_that, set_up, tear_down) { ... }   set_up or tear_down may be NULL
 *     AROUND_ALL(set_up, tear_down)                     once, around all tests
 */
#ifndef SUITE_H
#define SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct CMUnitTest suite[64];
static size_t suite_count;
static CMFixtureFunction suite_set_up, suite_tear_down;

#define TEST_WITH(name, set_up, tear_down)                                                \
    static void name(void **state);                                                       \
    __attribute__((constructor)) static void name##_is_listed(void)                       \
    {                                                                                     \
        suite[suite_count++] = (struct CMUnitTest){#name, name, set_up, tear_down, NULL}; \
    }                                                                                     \
    static void name(void **state __attribute__((unused)))

#define TEST(name) TEST_WITH(name, NULL, NULL)

#define AROUND_ALL(set_up, tear_down)                                 \
    __attribute__((constructor)) static void set_up##_is_listed(void) \
    {                                                                 \
        suite_set_up = set_up;                                        \
        suite_tear_down = tear_down;                                  \
    }

int main(void)
{
    return cmocka_run_group_tests_name(__BASE_FILE__, suite, suite_set_up, suite_tear_down);
}

#endif
