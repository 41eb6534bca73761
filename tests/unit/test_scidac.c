/* test_scidac.c - texts of scidac-checksum records, by other writers and invalid ones */
#include "scidac_checksum.h"

#include "suite.h"
#include <stdlib.h>
#include <string.h>

static int parse(const char *text, struct limefile_checksum *sum)
{
    *sum = (struct limefile_checksum){0, 0};
    return lemon_scidac_parse(text, strlen(text), sum);
}

TEST(test_written_texts)
{
    const struct limefile_checksum sums[] = {
        {0xf17ba6db, 0xebc2d919}, {0, 0}, {1, 0xffffffff}, {0x00abcdef, 0x0000000f}};
    static const int lengths[] = {146, 132, 139, 137}; /* QIO writes no leading zeros */
    char text[LEMON_SCIDAC_TEXT_MAX];
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        struct limefile_checksum sum;
        assert_int_equal(lemon_scidac_format(&sums[i], text), lengths[i]);
        assert_int_equal(strlen(text), lengths[i]);
        assert_int_equal(parse(text, &sum), 0);
        assert_memory_equal(&sum, &sums[i], sizeof sum);
    }
}

TEST(test_as_others_write)
{
    static const char *const texts[] = {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><scidacChecksum><version>1.0</version>"
        "<suma>abc1</suma><sumb>D</sumb></scidacChecksum>",
        "<suma> 0xabc1 </suma><sumb>\n0000000d\n</sumb>",
        "<s:sumb unit=\"a\">d</s:sumb><s:suma\txmlns:s='x'>0000ABC1</s:suma>",
        "<!-- <suma>1</suma> --><suma>abc1</suma><!----><sumb>d</sumb>",
        "<suma>abc1</suma><sumb>d</sumb><suma>2</suma>",
        "<suma/><suma>abc1</suma><sumb >0Xd</sumb >",
    };
    struct limefile_checksum sum;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(parse(texts[i], &sum), 0);
        assert_int_equal(sum.suma, 0xabc1);
        assert_int_equal(sum.sumb, 0xd);
    }
}

TEST(test_invalid_texts)
{
    static const char *const texts[] = {
        "",
        "<",
        "<>",
        "<!--",
        "<suma",
        "<suma>",
        "<suma>1",
        "<suma>1</suma>",
        "<suma>1</suma><sumb></sumb>",
        "<suma>1</suma><sumb>0x</sumb>",
        "<suma>123456789</suma><sumb>1</sumb>",
        "<suma>-1</suma><sumb>1</sumb>",
        "<suma>1g</suma><sumb>1</sumb>",
        "<suma>1</suma><sumb>1 2</sumb>",
        "<suma>1</suma><sumbb>1</sumbb>",
        "<xsuma>1</xsuma><sumb>1</sumb>",
        "<!-- <suma>1</suma><sumb>1</sumb>",
        "suma 1 sumb 2",
    };
    struct limefile_checksum sum;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(parse(texts[i], &sum), -1);
}

/* A buffer of exactly that size, for the sanitizers. */
TEST(test_any_bytes)
{
    static const char alphabet[] = "<>!-/:suma sumb0xf1 ";
    char text[LEMON_SCIDAC_TEXT_MAX];
    const struct limefile_checksum known = {0x12345678, 0x9abcdef0};
    size_t whole = (size_t)lemon_scidac_format(&known, text);
    unsigned random = 1;
    for (int i = 0; i < 200000; i++) {
        struct limefile_checksum sum;
        random = random * 1103515245u + 12345u;
        size_t n = (random >> 8) % (whole + 1);
        char *bytes = malloc(n + !n);
        memcpy(bytes, text + (random >> 20) % (whole - n + 1), n);
        for (int k = 0; n && k < i % 8; k++) {
            random = random * 1103515245u + 12345u;
            bytes[(random >> 8) % n] =
                i % 3 ? alphabet[(random >> 20) % (sizeof alphabet - 1)] : (char)(random >> 20);
        }
        int code = lemon_scidac_parse(bytes, n, &sum);
        assert_true(code == 0 || code == -1);
        free(bytes);
    }
}
