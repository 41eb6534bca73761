/* test_text.c - which characters may reach a terminal or a log, and the order of names */
#include "unit.h"
#include "text.h"

/* Encodes a code point, also a surrogate, as UTF-8 without the library. */
static size_t encode(uint32_t code, char out[5])
{
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = n; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[n] | code);
    out[n] = '\0';
    return n;
}

static bool must_be_replaced(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200e, 0x200f},
        {0x2028, 0x2029}, {0x202a, 0x202e}, {0x2066, 0x2069}, {0xd800, 0xdfff},
    };
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

static void assert_defused(const char *text, const char *spared, const char *want)
{
    char copy[256];
    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    limefile_text_sanitize(copy, spared);
    assert_string_equal(copy, want);
    limefile_text_sanitize(copy, spared); /* harmless text is unchanged */
    assert_string_equal(copy, want);
}

/* Sequences of several bytes or of none; single bytes and code points are tested below. */
TEST(test_texts)
{
    assert_defused("", "", "");
    assert_defused("plain text ~", "", "plain text ~");
    assert_defused("a\x1b[2J\x9b\xc2\x9b\xe2\x80\xa8\xe2\x80\xa9", "", "a?[2J?????????");
    assert_defused("caf\xc3\xa9 \xe2\x82\xac", "", "caf\xc3\xa9 \xe2\x82\xac");
    assert_defused("caf\xe9 au lait", "", "caf? au lait");
}

TEST(test_allowed)
{
    assert_defused("\ta\nb\r\x1b", "\t\n", "\ta\nb??");
    assert_defused("\x7f\x01", "\x7f", "\x7f?");
    assert_defused("\xc2\x85\x85", "\x85", "???"); /* only single bytes can be allowed */
}

/* Alone and between other characters. */
TEST(test_every_byte)
{
    for (int c = 1; c < 256; c++) {
        char alone[] = {(char)c, '\0'}, between[] = {'a', (char)c, 'b', '\0'};
        bool stays = c >= 0x20 && c < 0x7f;
        char want[] = {'a', stays ? (char)c : '?', 'b', '\0'};
        assert_defused(between, "", want);
        assert_defused(alone, "", stays ? alone : "?");
    }
}

TEST(test_every_code_point)
{
    uint32_t nul = 1;
    assert_int_equal(limefile_utf8_decode("", 1, &nul), 1);
    assert_int_equal(nul, 0);
    for (uint32_t code = 1; code <= 0x10ffff; code++) {
        char text[5], out[5];
        uint32_t read = 0;
        size_t n = encode(code, text);
        bool surrogate = code >= 0xd800 && code < 0xe000;
        assert_int_equal(limefile_utf8_decode(text, n, &read), surrogate ? 0 : n);
        assert_true(surrogate || read == code);
        strcpy(out, text);
        limefile_text_sanitize(out, "");
        if (must_be_replaced(code))
            assert_memory_equal(out, "????", n);
        else
            assert_memory_equal(out, text, n);
        assert_int_equal(strlen(out), n);
    }
}

/* Truncated by the end of the text or by the next byte. */
TEST(test_cut_sequences)
{
    static const char *const whole[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8d\x8b"};
    for (size_t i = 0; i < COUNT(whole); i++)
        for (size_t n = 1; n < strlen(whole[i]); n++) {
            uint32_t code;
            char text[8], want[8] = "????";
            snprintf(text, sizeof text, "%.*s", (int)n, whole[i]);
            assert_int_equal(limefile_utf8_decode(whole[i], n, &code), 0);
            assert_defused(text, "", want + 4 - n);
            strcpy(text + n, "a"); /* the next byte is checked on its own */
            strcpy(want + 4, "a");
            assert_defused(text, "", want + 4 - n);
            memmove(text + n, whole[0], 3);
            strcpy(want + 4, whole[0]);
            assert_defused(text, "", want + 4 - n);
        }
}

TEST(test_not_utf8)
{
    static const char *const bad[] = {
        "\xc0\x80",
        "\xc0\xaf",
        "\xc1\xbf",
        "\xc1\x9b",
        "\xe0\x80\x9b",
        "\xe0\x9f\xbf",
        "\xe0\x82\x9b",
        "\xf0\x80\x80\x9b",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x82\x80\xae",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xf7\xbf\xbf\xbf",
        "\xf8\x88\x80\x80\x80",
        "\xfe",
        "\xff\xff",
        "\x80\xbf",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        uint32_t code;
        assert_int_equal(limefile_utf8_decode(bad[i], strlen(bad[i]), &code), 0);
        assert_defused(bad[i], "", &"?????"[5 - strlen(bad[i])]);
    }
}

TEST(test_natural_order)
{
    static const char *const names[] = {
        "",        "conf.02",  "conf.2",    "conf.9",
        "conf.10", "conf.10a", "conf.010b", "conf.999999999999999999999",
        "conf.a",  "conf10",   "conf\xff"};
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t k = 0; k < COUNT(names); k++) {
            int order = limefile_natural_compare(names[i], names[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
}
