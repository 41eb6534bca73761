/* test_range.c - a record's range of its container, as text and back */
#include "unit.h"
#include "limerange.h"

static int decode(const char *text, size_t len, struct limefile_range *range)
{
    static char buffer[LIMEFILE_RANGE_TEXT_MAX + 1];
    memcpy(buffer, text, len);
    return limefile_range_decode(buffer, len, range);
}

TEST(round_trip)
{
    const struct limefile_range all[] = {
        {.container = {1, 2, 0, 0, 1000, {5, 7}, {6, 8}},
         .offset = 144,
         .bytes = 856,
         .prefix = 7,
         .path = "/a b\n c"},
        {.container = {1, 2, 0, 0, 1000, {5, 7}, {6, 8}},
         .bytes = 5,
         .has_job = 1,
         .path = "/1 /a"},
        {.container =
             {UINT64_MAX, UINT64_MAX, 0, 0, INT64_MAX, {-1, 999999999}, {INT64_MAX, 0}},
         .offset = INT64_MAX,
         .path = "/"},
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        char text[LIMEFILE_RANGE_TEXT_MAX];
        struct limefile_range range;
        int len = limefile_range_encode(&all[i], text);
        assert_true(len > 0);
        assert_int_equal(decode(text, (size_t)len, &range), 0);
        assert_true(limefile_identity_equal(&range.container, &all[i].container));
        assert_true(range.offset == all[i].offset && range.bytes == all[i].bytes);
        assert_true(range.prefix == all[i].prefix);
        assert_string_equal(range.path, all[i].path);
        assert_int_equal(range.has_job, all[i].has_job);
        for (int cut = 0; cut < len - (int)strlen(all[i].path) + 1; cut++)
            assert_int_equal(decode(text, (size_t)cut, &range), -EPROTO);
    }
}

TEST(too_long)
{
    char path[LIMEFILE_RANGE_TEXT_MAX + 1], text[LIMEFILE_RANGE_TEXT_MAX];
    struct limefile_range range = {.path = path};
    memset(path, '/', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_int_equal(limefile_range_encode(&range, text), -ERANGE);
    int head = snprintf(text, sizeof text, "4 1 1 1 1 1 1 1 0 1 0 0 ");
    memset(text + head, '/', LIMEFILE_RANGE_PATH_MAX);
    assert_int_equal(decode(text, (size_t)head + LIMEFILE_RANGE_PATH_MAX - 1, &range), 0);
    assert_int_equal(decode(text, (size_t)head + LIMEFILE_RANGE_PATH_MAX, &range), -EPROTO);
}

TEST(wrong)
{
    static const char *const all[] = {
        "5 1 2 1000 5 6 7 8 144 856 0 0 /a", /* a later version */
        "3 1 2 1000 5 6 7 8 144 856 0 /a",
        "4 1 2 1000 5 6 7 8 145 856 0 0 /a", /* beyond the end */
        "4 1 2 1000 5 6 7 8 1001 0 0 0 /a",
        "4 1 2 18446744073709551615 5 6 7 8 0 0 0 0 /a",
        "4 18446744073709551616 2 1000 5 6 7 8 144 856 0 0 /a",
        "4 1 2 1000 9223372036854775808 6 7 8 144 856 0 0 /a",
        "4 1 2 1000 5 1000000000 7 8 144 856 0 0 /a",
        "4 1 -2 1000 5 6 7 8 144 856 0 0 /a",
        "4 1 2 1000 --5 6 7 8 144 856 0 0 /a",
        "4 1  2 1000 5 6 7 8 144 856 0 0 /a",
        "4 1 2 0x10 5 6 7 8 0 1 0 0 /a",
        "4 1 2 1000 5 6 7 8 144 856 0 0 a", /* not absolute */
        "4 1 2 1000 5 6 7 8 144 856 0 0 ",
        "4 1 2 1000 5 6 7 8 144 18446744073709551615 0 0 /a",
        "4 1 2 1000 5 6 7 8 144 856 0 2 /a", /* neither with a job nor without */
        "4 1 2 1000 5 6 7 8 144 856 0  /a",
        "4 1 2 1000 5 6 7 8 144 856 9223372036854775808 0 /a",
    };
    struct limefile_range range;
    for (size_t i = 0; i < COUNT(all); i++)
        assert_int_equal(decode(all[i], strlen(all[i]), &range), -EPROTO);
    assert_int_equal(decode("4 1 2 9 5 6 7 8 0 9 0 0 /a\0b", 28, &range), -EPROTO);
}
