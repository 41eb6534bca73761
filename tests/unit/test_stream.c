/* test_stream.c - what is taken for a stream, and what is fetched ahead of it */
#include "stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define END (1000 * MIB)

static uint64_t note(struct limefs_stream *stream, uint64_t offset, size_t size, uint64_t *n)
{
    return limefs_stream_note(stream, offset, size, END, n);
}

static void test_a_stream_is_fetched_ahead_of_without_gaps(void **state)
{
    struct limefs_stream stream = {0};
    uint64_t n, fetched = 0;
    (void)state;
    for (uint64_t at = 0; at < END; at += MIB) {
        uint64_t from = note(&stream, at, MIB, &n);
        if (n == 0)
            continue;
        assert_true(from >= at + MIB); /* never what is being read already */
        if (fetched)
            assert_int_equal(from, fetched);
        fetched = from + n;
        assert_true(fetched <= END);
        assert_true(fetched <= at + MIB + 32 * MIB);
    }
    assert_int_equal(fetched, END);
}

static void test_the_first_request_is_no_stream(void **state)
{
    struct limefs_stream stream = {0};
    uint64_t n;
    (void)state;
    note(&stream, 0, MIB, &n);
    assert_int_equal(n, 0);
    note(&stream, MIB, MIB, &n);
    assert_true(n > 0);
}

static void test_what_is_covered_is_not_fetched(void **state)
{
    struct limefs_stream stream = {0};
    uint64_t n, from, total = 0;
    (void)state;
    for (uint64_t at = 0; at < 100 * MIB; at += MIB) {
        limefs_stream_cover(&stream, at + 16 * MIB);
        note(&stream, at, MIB, &n);
        total += n;
    }
    assert_int_equal(total, 0);
    for (uint64_t at = 100 * MIB; at < END && total == 0; at += MIB) {
        from = note(&stream, at, MIB, &n);
        assert_true(n == 0 || (from >= at + MIB && at < 140 * MIB));
        total += n;
    }
    assert_true(total > 0);
}

static void test_requests_out_of_order_are_one_stream(void **state)
{
    static const uint64_t order[] = {1, 0, 3, 2, 6, 4, 5, 7};
    struct limefs_stream stream = {0};
    uint64_t n, total = 0;
    (void)state;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        note(&stream, order[i] * MIB, MIB, &n);
        total += n;
    }
    assert_true(total >= 24 * MIB);
}

static void test_random_and_small_requests_fetch_nothing(void **state)
{
    struct limefs_stream stream = {0};
    uint64_t n, at = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        at = (at + 377 * MIB) % END;
        note(&stream, at, MIB, &n);
        assert_int_equal(n, 0);
    }
    for (uint64_t small = 0; small < 10 * MIB; small += 4096) {
        note(&stream, small, 4096, &n);
        assert_int_equal(n, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_is_fetched_ahead_of_without_gaps),
        cmocka_unit_test(test_the_first_request_is_no_stream),
        cmocka_unit_test(test_what_is_covered_is_not_fetched),
        cmocka_unit_test(test_requests_out_of_order_are_one_stream),
        cmocka_unit_test(test_random_and_small_requests_fetch_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
