/* test_spans.c - sets of byte ranges, against one bit for each byte */
#include "range_set.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

enum {
    BYTES = 200,
};

static bool all_present(const bool *present, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        if (!present[i])
            return false;
    return true;
}

static void check(const struct limefs_range_set *spans, const bool *present)
{
    bool shown[BYTES] = {false};
    for (unsigned i = 0; i < spans->count; i++) {
        const struct limefs_byte_range *range = &spans->range[i];
        assert_true(range->from < range->to && range->to <= BYTES);
        assert_true(i == 0 || spans->range[i - 1].to < range->from); /* separate */
        memset(shown + range->from, true, (size_t)(range->to - range->from));
    }
    assert_memory_equal(shown, present, sizeof shown);
}

TEST(test_random_ranges)
{
    srand(1);
    for (int round = 0; round < 2000; round++) {
        struct limefs_range_set spans = {0};
        bool present[BYTES] = {false};
        for (int i = 0; i < 60; i++) {
            unsigned from = (unsigned)rand() % BYTES, n = (unsigned)rand() % 8;
            unsigned to = from + n < BYTES ? from + n : BYTES;
            bool full = spans.count == LIMEFS_RANGE_SET_MAX;
            if (limefs_range_set_add(&spans, from, to))
                memset(present + from, true, to - from);
            else
                assert_true(full);
            check(&spans, present);
            assert_int_equal(limefs_range_set_covers(&spans, from, to),
                             all_present(present, from, to));
            uint64_t first = from, last = to;
            bool gap = limefs_range_set_find_gap(&spans, &first, &last);
            assert_int_equal(gap, !all_present(present, from, to));
            assert_true(!gap ||
                        (all_present(present, from, (unsigned)first) && !present[first] &&
                         !present[last - 1] && (last == to || present[last])));
        }
    }
}

TEST(test_no_room)
{
    struct limefs_range_set spans = {0};
    for (unsigned i = 0; i < LIMEFS_RANGE_SET_MAX; i++)
        assert_true(limefs_range_set_add(&spans, 10 * i, 10 * i + 1));
    uint64_t far = 10 * LIMEFS_RANGE_SET_MAX;
    assert_false(limefs_range_set_add(&spans, far, far + 1));
    assert_int_equal(spans.count, LIMEFS_RANGE_SET_MAX);
    assert_true(limefs_range_set_add(&spans, 1, 10)); /* joins two */
    assert_true(limefs_range_set_add(&spans, far, far + 1));
    assert_true(limefs_range_set_add(&spans, 0, 2 * far));
    assert_int_equal(spans.count, 1);
    assert_true(limefs_range_set_covers(&spans, 0, 2 * far));
    assert_false(limefs_range_set_covers(&spans, 0, 2 * far + 1));
    assert_true(
        limefs_range_set_covers(&spans, 5 * far, 5 * far)); /* the set covers an empty range */
}
