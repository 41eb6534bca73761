/* test_scan.c - findings in invalid containers, and their offsets */
#include "unit.h"

/* Two good records of 304 bytes in total; the second has 5 bytes of padding. */
static struct bytes two_records(void)
{
    struct bytes b = {0};
    bytes_record(&b, "first", 8, 'a', MB);  /* 0, next at 152 */
    bytes_record(&b, "second", 3, 'b', ME); /* 152, data 296..299, next at 304 */
    assert_int_equal(b.n, 304);
    return b;
}

/* Every length to which the file of two records can be truncated. */
TEST(test_cut_at_every_byte)
{
    struct bytes b = two_records();
    for (size_t n = 1; n < 304; n++) {
        struct bytes cut = {.at = b.at, .n = n};
        if (n < 144) {
            assert_only(&cut, 0, LIMEFILE_E_HEADER_CUT, 0, 1);
        } else if (n < 152) {
            assert_only(&cut, 0, LIMEFILE_E_DATA_CUT, 0, 1);
            struct seen seen = scan_bytes(&cut);
            assert_int_equal(seen.finding[0].have, n - 144);
            assert_int_equal(seen.finding[0].want, 8);
        } else if (n == 152) {
            assert_only(&cut, 1, LIMEFILE_D_ME_MISSING, 6, 1);
        } else if (n < 296) {
            assert_only(&cut, 1, LIMEFILE_E_HEADER_CUT, 152, 2);
            struct seen seen = scan_bytes(&cut);
            assert_int_equal(seen.finding[0].have, n - 152);
            assert_int_equal(seen.finding[0].want, 144);
        } else if (n < 299) {
            assert_only(&cut, 1, LIMEFILE_E_DATA_CUT, 152, 2);
        } else {
            assert_only(&cut, 2, LIMEFILE_D_PAD_CUT, n, 2);
            struct seen seen = scan_bytes(&cut);
            assert_int_equal(seen.finding[0].have, n - 299);
            assert_int_equal(seen.finding[0].want, 5);
        }
    }
    bytes_free(&b);
}

TEST(test_trailing_bytes)
{
    for (int value = 0; value <= 0x45; value += 0x45)
        for (size_t n = 1; n <= 300; n++) {
            struct bytes b = two_records();
            bytes_fill(&b, value, n);
            if (n == 1 && value == 0x45) /* a header begins with this byte */
                assert_only(&b, 2, LIMEFILE_E_HEADER_CUT, 304, 3);
            else
                assert_only(&b, 2, LIMEFILE_E_TRAILING, 304, 3);
            struct seen seen = scan_bytes(&b);
            assert_int_equal(seen.finding[0].have, n);
            bytes_free(&b);
        }
}

TEST(test_padding_nonzero)
{
    for (size_t at = 299; at < 304; at++) {
        struct bytes b = two_records();
        b.at[at] = 0x77;
        assert_only(&b, 2, LIMEFILE_D_PAD_NONZERO, at, 2);
        struct seen seen = scan_bytes(&b);
        assert_int_equal(seen.finding[0].have, 0x77);
        b.at[303] = 1; /* reported once for each record */
        b.n -= at == 303 ? 0 : 1;
        seen = scan_bytes(&b);
        assert_int_equal(seen.findings, at == 303 ? 1 : 2);
        bytes_free(&b);
    }
}

TEST(test_wrong_magic)
{
    for (size_t i = 0; i < 4; i++) {
        struct bytes b = two_records();
        b.at[152 + i] ^= 0x10;
        assert_only(&b, 1, LIMEFILE_E_TRAILING, 152, 2);
        b.at[i] ^= 0x10;
        assert_only(&b, 0, LIMEFILE_E_MAGIC, 0, 1);
        for (b.n = 1; b.n < 160; b.n++)
            assert_only(&b, 0, b.n <= i ? LIMEFILE_E_HEADER_CUT : LIMEFILE_E_MAGIC, 0, 1);
        bytes_free(&b);
    }
}

TEST(test_reserved_bits)
{
    for (int bit = 0; bit < 6; bit++) {
        struct bytes b = two_records();
        b.at[152 + 6] |= (unsigned char)(1 << bit);
        assert_only(&b, 2, LIMEFILE_D_FLAGS, 158, 2);
        bytes_free(&b);
    }
    for (int bit = 0; bit < 8; bit++) {
        struct bytes b = two_records();
        b.at[152 + 7] = (unsigned char)(1 << bit);
        assert_only(&b, 2, LIMEFILE_D_RESERVED, 159, 2);
        bytes_free(&b);
    }
}

/* All sequences of flags of three records; the expected findings follow from the format. */
TEST(test_every_order_of_flags)
{
    for (unsigned all = 0; all < 64; all++) {
        struct bytes b = {0};
        struct {
            int code;
            uint64_t offset, ordinal;
        } want[8];
        size_t expected = 0;
        bool ended = true;
        for (unsigned i = 0; i < 3; i++) {
            unsigned flags = (all >> 2 * i & 3) << 6;
            bytes_record(&b, "r", 8, 0, flags);
            want[expected].offset = 152 * i + 6;
            want[expected].ordinal = i + 1;
            if (ended && !(flags & MB))
                want[expected++].code = LIMEFILE_D_MB_MISSING;
            if (!ended && flags & MB)
                want[expected++].code = LIMEFILE_D_MB_INSIDE;
            ended = flags & ME;
        }
        want[expected].offset = 310;
        want[expected].ordinal = 3;
        if (!ended)
            want[expected++].code = LIMEFILE_D_ME_MISSING;
        struct seen seen = scan_bytes(&b);
        assert_int_equal(seen.records, 3);
        assert_int_equal(seen.end, 0);
        assert_int_equal(seen.findings, expected);
        for (size_t i = 0; i < expected; i++)
            assert_finding(&seen, i, want[i].code, want[i].offset, want[i].ordinal);
        bytes_free(&b);
    }
}

TEST(test_types_that_fill_the_field)
{
    struct bytes b = {0};
    bytes_record(&b, "t", 8, 'd', MB | ME);
    memset(b.at + 16, 'x', 127);
    assert_int_equal(scan_bytes(&b).findings, 0);
    b.at[143] = 'x';
    assert_only(&b, 1, LIMEFILE_D_TYPE_LONG, 16, 1);
    for (size_t nul = 16; nul < 143; nul++) { /* garbage after the NUL */
        memset(b.at + 16, 'x', 128);
        b.at[nul] = 0;
        struct seen seen = scan_bytes(&b);
        size_t i = nul == 16 ? 1 : 0;
        assert_int_equal(seen.findings, i + 1);
        assert_finding(&seen, i, LIMEFILE_D_TYPE_TAIL, nul, 1);
    }
    bytes_free(&b);
}

/* ---- failing sources ---- */

static struct bytes many_records(void)
{
    struct bytes b = {0};
    for (size_t i = 0; i < 200; i++)
        bytes_record(&b, i % 2 ? "odd" : "even", i * 37 % 4000 + (i % 50 == 0 ? 40000 : 0), 'x',
                     MB | ME);
    return b;
}

TEST(test_short_and_interrupted_reads)
{
    static const size_t shorts[] = {1, 2, 7, 143, 145, 4095};
    struct bytes b = many_records();
    for (size_t i = 0; i < COUNT(shorts); i++) {
        struct faulty faulty;
        faulty_init(&faulty, &b);
        faulty.short_by = shorts[i];
        faulty.interrupt = 2;
        struct seen seen = scan_source(&faulty.source);
        assert_int_equal(seen.end, 0);
        assert_int_equal(seen.findings, 0);
        assert_int_equal(seen.records, 200);
    }
    bytes_free(&b);
}

TEST(test_failing_reads)
{
    struct bytes b = many_records();
    struct faulty faulty;
    faulty_init(&faulty, &b);
    scan_source(&faulty.source);
    unsigned calls = faulty.calls;
    size_t before = 0;
    assert_true(calls > 10);
    for (unsigned n = 1; n <= calls; n++) {
        faulty_init(&faulty, &b);
        faulty.fail_at = n;
        faulty.fail_for = UINT32_MAX;
        struct seen seen = scan_source(&faulty.source);
        assert_int_equal(seen.end, -EIO);
        assert_int_equal(seen.findings, 1);
        assert_int_equal(seen.finding[0].code, -EIO);
        assert_int_equal(seen.finding[0].ordinal, seen.records + 1);
        assert_true(seen.finding[0].offset < b.n);
        assert_true(seen.records >= before); /* the records before the fault are found */
        before = seen.records;

        faulty_init(&faulty, &b); /* transient: the required bytes can be read */
        faulty.fail_at = n;
        faulty.fail_for = 1;
        seen = scan_source(&faulty.source);
        assert_int_equal(seen.records, seen.end ? seen.finding[0].ordinal - 1 : 200);
        assert_true(seen.end == 0 || seen.end == -EIO);
    }
    bytes_free(&b);
}

/* A bad sector: reads that touch it fail, as on a disk. */
struct sector {
    struct limefile_source source;
    struct bytes *bytes;
    uint64_t bad, bad_end, size;
};

static ssize_t sector_read(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    struct sector *s = (struct sector *)source;
    if (offset >= s->bytes->n)
        return 0;
    if (n > s->bytes->n - offset)
        n = s->bytes->n - offset;
    if (offset < s->bad && offset + n > s->bad)
        n = s->bad - offset;
    else if (offset >= s->bad && offset < s->bad_end)
        return -EIO;
    memcpy(buf, s->bytes->at + offset, n);
    return (ssize_t)n;
}

static int sector_size(struct limefile_source *source, uint64_t *size)
{
    *size = ((struct sector *)source)->size;
    return 0;
}

static const struct limefile_source_ops sector_ops = {.read = sector_read, .size = sector_size};

TEST(test_bad_sector)
{
    struct bytes b = {0};
    bytes_record(&b, "one", 3, 'a', MB);
    bytes_record(&b, "two", 100000, 'b', 0); /* header 152, data 296.. */
    bytes_record(&b, "three", 5, 'c', ME);   /* header 100296 */
    struct sector s = {{&sector_ops}, &b, 512, 1024, b.n};
    struct seen seen = scan_source(&s.source);
    assert_int_equal(seen.records, 3); /* only data are affected */
    assert_int_equal(seen.findings, 0);
    s.bad = 100300;
    s.bad_end = 100310;
    seen = scan_source(&s.source);
    assert_int_equal(seen.records, 2);
    assert_int_equal(seen.end, -EIO);
    assert_finding(&seen, 0, -EIO, 100296, 3);
    bytes_free(&b);
}

TEST(test_growing_and_shrinking)
{
    struct bytes b = two_records();
    bytes_record(&b, "late", 5000, 'l', MB | ME);
    for (uint64_t size = 304; size < b.n; size += 8) { /* the source states a larger size */
        struct sector s = {{&sector_ops}, &b, UINT64_MAX, UINT64_MAX, size};
        struct seen seen = scan_source(&s.source);
        assert_int_equal(seen.records, 2);
        assert_int_equal(seen.findings, size > 304);
        if (size > 304 && size < 448) {
            assert_finding(&seen, 0, LIMEFILE_E_HEADER_CUT, 304, 3);
            assert_int_equal(seen.finding[0].have, size - 304);
        } else if (size >= 448) {
            assert_finding(&seen, 0, LIMEFILE_E_DATA_CUT, 304, 3);
            assert_int_equal(seen.finding[0].have, size - 448);
        }
    }
    struct sector s = {{&sector_ops}, &b, UINT64_MAX, UINT64_MAX, b.n};
    for (b.n = 0; b.n < 448; b.n++) { /* the source states a smaller size */
        struct seen seen = scan_source(&s.source);
        assert_int_equal(seen.end, LIMEFILE_E_SHRUNK);
        assert_int_equal(seen.records, b.n < 144   ? 0
                                       : b.n < 304 ? b.n >= 152 && b.n >= 304 ? 2 : 1
                                                   : 2);
    }
    bytes_free(&b);
}

TEST(test_text_of_findings)
{
    char text[200];
    struct limefile_finding f = {LIMEFILE_E_DATA_CUT, 1234, 7, 10, 20, NULL};
    int n = limefile_finding_text(&f, text, sizeof text);
    assert_string_equal(text, "offset 1234: record 7: the file ends inside the data "
                              "(10 of 20 bytes present)");
    assert_int_equal(n, strlen(text));
    for (int code = LIMEFILE_E_MAGIC; code <= LIMEFILE_E_SHRUNK; code++) {
        f = (struct limefile_finding){code,       UINT64_MAX, UINT64_MAX,
                                      UINT64_MAX, UINT64_MAX, NULL};
        assert_true(limefile_finding_text(&f, text, sizeof text) < (int)sizeof text);
        assert_non_null(strstr(text, limefile_strerror(code)));
        char small[8];
        limefile_finding_text(&f, small, sizeof small);
        assert_string_equal(small, "offset ");
    }
}
