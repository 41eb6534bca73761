/* test_name.c - file names of records and records of file names */
#include "unit.h"

TEST(test_encode)
{
    static const struct {
        const char *type, *name;
    } cases[] = {
        {"ildg-binary-data", "ildg-binary-data"},
        {"", ""},
        {"a/b", "a%2Fb"},
        {"100%", "100%25"},
        {"%2F", "%252F"},
        {"..", ".."},
        {"a b;c", "a b;c"},
        {"\x01\x1f\x7f\x80\xff", "%01%1F%7F%80%FF"},
        {"\n", "%0A"},
        {"~", "~"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[256], back[256];
        size_t n = limefile_name_encode(cases[i].type, strlen(cases[i].type), out, sizeof out);
        assert_string_equal(out, cases[i].name);
        assert_int_equal(n, strlen(cases[i].name));
        assert_int_equal(limefile_name_decode(out, n, back, sizeof back),
                         strlen(cases[i].type));
        assert_string_equal(back, cases[i].type);
    }
}

TEST(test_every_byte)
{
    for (int c = 0; c < 256; c++) {
        char byte = (char)c, out[8], back[8];
        size_t n = limefile_name_encode(&byte, 1, out, sizeof out);
        bool plain = c >= 0x20 && c <= 0x7e && c != '/' && c != '%';
        assert_int_equal(n, plain ? 1 : 3);
        assert_int_equal(strlen(out), n);
        assert_null(strchr(out, '/'));
        assert_int_equal(limefile_name_decode(out, n, back, sizeof back), 1);
        assert_int_equal((unsigned char)back[0], c);
    }
}

TEST(test_encode_cuts)
{
    static const char *const want[] = {"", "", "a", "a", "a", "a%2F", "a%2Fb"};
    for (size_t cap = 1; cap < COUNT(want); cap++) {
        char out[16];
        memset(out, 'X', sizeof out);
        assert_int_equal(limefile_name_encode("a/b", 3, out, cap), strlen(want[cap]));
        assert_string_equal(out, want[cap]);
        for (size_t i = cap; i < sizeof out; i++)
            assert_int_equal(out[i], 'X');
    }
    assert_int_equal(limefile_name_encode("a", 1, NULL, 0), 0);
}

TEST(test_decode)
{
    static const struct {
        const char *name, *type;
    } cases[] = {
        {"%2f%2F", "//"}, {"%", "%"},     {"%4", "%4"},   {"%4G", "%4G"},
        {"%G4", "%G4"},   {"%%41", "%A"}, {"%41%", "A%"}, {"%2541", "%41"},
        {"a%20b", "a b"}, {"%+1", "%+1"}, {"% 1", "% 1"}, {"%0x", "%0x"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[32];
        size_t n = limefile_name_decode(cases[i].name, strlen(cases[i].name), out, sizeof out);
        assert_string_equal(out, cases[i].type);
        assert_int_equal(n, strlen(cases[i].type));
    }
    char out[3];
    assert_int_equal(limefile_name_decode("abcdef", 6, out, sizeof out), 2);
    assert_string_equal(out, "ab");
    assert_int_equal(limefile_name_decode("%00", 3, out, sizeof out), 1);
    assert_int_equal(out[0], 0);
    assert_int_equal(limefile_name_decode("a", 1, NULL, 0), 0);
}

TEST(test_name_of)
{
    char out[LIMEFILE_NAME_MAX + 1], type[129];
    struct limefile_record r = {.ordinal = 3, .type = "ildg-binary-data", .type_len = 16};
    assert_int_equal(limefile_name_format(&r, out), 20);
    assert_string_equal(out, "003-ildg-binary-data");
    r.ordinal = 1000;
    limefile_name_format(&r, out);
    assert_string_equal(out, "1000-ildg-binary-data");
    r.type_len = 0;
    r.type = "";
    limefile_name_format(&r, out);
    assert_string_equal(out, "1000-");
    memset(type, 0xff, sizeof type);
    type[128] = 0;
    r.type = type;
    r.type_len = 128; /* 5 + 3 * 128 = 389: cut after a whole %FF */
    assert_int_equal(limefile_name_format(&r, out), 5 + 83 * 3);
    assert_string_equal(out + 5 + 82 * 3, "%FF");
    r.ordinal = UINT64_MAX;
    assert_true(limefile_name_format(&r, out) <= LIMEFILE_NAME_MAX);
}

/* ---- finding ---- */

static void find(const struct limefile_index *index, const char *name, uint64_t want)
{
    struct limefile_record r = {0};
    int err = limefile_name_find(index, name, &r);
    assert_int_equal(err, want ? 0 : LIMEFILE_E_NO_RECORD);
    if (want)
        assert_int_equal(r.ordinal, want);
}

TEST(test_find)
{
    static const char *const types[] = {"once", "twice", "twice", "002-twice",
                                        "a/b",  "",      "7-x"};
    struct bytes b = {0};
    struct limefile_memory memory;
    for (size_t i = 0; i < COUNT(types); i++)
        bytes_record(&b, types[i], 8, 0, MB | ME);
    limefile_memory_borrow(&memory, b.at, b.n);
    struct limefile_index *index = index_of(&memory.source);
    static const struct {
        const char *name;
        uint64_t ordinal; /* 0: none */
    } cases[] = {
        {"001-once", 1},
        {"once", 1},
        {"1-once", 0},
        {"0001-once", 0},
        {"001-", 0},
        {"001-onc", 0},
        {"001-once ", 0},
        {"+01-once", 0},
        {" 01-once", 0},
        {"002-twice", 2},
        {"003-twice", 3},
        {"twice", 0},
        {"004-002-twice", 4},
        {"005-a%2Fb", 5},
        {"a%2Fb", 5},
        {"005-a%2fb", 0},
        {"a%2fb", 5},
        {"006-", 6},
        {"", 0},
        {"-", 0},
        {"008-once", 0},
        {"000-once", 0},
        {"7-x", 7},
        {"007-7-x", 7},
        {"18446744073709551617-once", 0},
        {"99999999999999999999999-x", 0},
        {".", 0},
        {"..", 0},
        {"nothing", 0},
        {"%6F%6E%63%65", 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        find(index, cases[i].name, cases[i].ordinal);
    char *longest = malloc(100001);
    memset(longest, '1', 100000);
    longest[100000] = 0;
    find(index, longest, 0);
    memset(longest, 'x', 100000);
    find(index, longest, 0);
    free(longest);
    limefile_index_free(index);
    bytes_free(&b);
}
