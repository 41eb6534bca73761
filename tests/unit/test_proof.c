/* test_proof.c - can data be compared with their checksum if descriptions are wrong? */
#define _GNU_SOURCE
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "limeildg.h"

enum { AT = 320 };

/* Returns a field of a lattice of `sites`, with a checksum and `bytes` of data. */
static struct limefile_field field_of(uint64_t sites, uint64_t site_bytes, uint64_t bytes)
{
    return (struct limefile_field){
        .record = {.bytes = bytes, .data_offset = AT, .ordinal = 2},
        .kind = LIMEFILE_KIND_GAUGE,
        .sites = sites,
        .site_bytes = site_bytes,
        .expected = sites * site_bytes,
        .checksum_ordinal = 3,
        .has_checksum = true,
    };
}

/* Each possible layout gives the length. */
static unsigned readings(const struct limefile_field *f, struct limefile_field as[3])
{
    unsigned n = 0;
    while (n < 3 && limefile_field_layout(f, n, &as[n])) {
        assert_true(limefile_field_is_summable(&as[n]));
        n++;
    }
    for (unsigned i = n; i < 5; i++)
        assert_false(limefile_field_layout(f, i, &as[2]));
    return n;
}

static void assert_unverified(const struct limefile_field *f, const char *why)
{
    struct limefile_field as[3];
    if (f->has_checksum)
        assert_int_equal(readings(f, as), 0);
    assert_null(limefile_field_why_bad(f));
    assert_string_equal(limefile_field_why_unverified(f), why);
}

static void assert_bad(const struct limefile_field *f, const char *why)
{
    struct limefile_field as[3];
    assert_int_equal(readings(f, as), 0);
    assert_string_equal(limefile_field_why_bad(f), why);
    assert_null(limefile_field_why_unverified(f));
}

static void assert_readings(const struct limefile_field *f, const uint64_t (*sites)[2],
                            size_t count)
{
    struct limefile_field as[3];
    assert_int_equal(readings(f, as), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(as[i].sites, sites[i][0]);
        assert_int_equal(as[i].site_bytes, sites[i][1]);
    }
    assert_null(limefile_field_why_bad(f));
    assert_null(limefile_field_why_unverified(f));
}

#define READINGS(f, ...)                                        \
    do {                                                        \
        static const uint64_t want[][2] = {__VA_ARGS__};        \
        assert_readings(f, want, sizeof want / sizeof want[0]); \
    } while (0)

TEST(test_as_described)
{
    struct limefile_field f = field_of(16, 576, 16 * 576);
    READINGS(&f, {16, 576});
    f.descriptions_differ = true; /* lattice and length agree with one of the two */
    READINGS(&f, {16, 576});
    f.expected = 0; /* no lattice is known */
    f.descriptions_differ = false;
    READINGS(&f, {16, 576});
}

TEST(test_other_lengths)
{
    struct limefile_field f = field_of(16, 288, 2 * 16 * 288); /* other extents, or precision */
    READINGS(&f, {32, 288}, {16, 576});
    f = field_of(16, 576, 16 * 288);
    READINGS(&f, {8, 576}, {16, 288});
    f = field_of(16, 576, 15 * 576);
    READINGS(&f, {15, 576}, {16, 540});
    f = field_of(512, 576, 513 * 576);
    READINGS(&f, {513, 576});
    f = field_of(16, 576, 16 * 100);
    READINGS(&f, {16, 100});
    f = field_of(1, 8, 20);
    f.kind = LIMEFILE_KIND_GLOBAL;
    READINGS(&f, {1, 20});
}

TEST(test_bad_without_a_sum)
{
    struct limefile_field f = field_of(512, 576, 512 * 576 - 1);
    assert_bad(&f, "its length is not a whole number of sites");
    f = field_of(512, 576, 0);
    assert_bad(&f, "there are no data");
    f = field_of(10, 8, 81); /* an unknown lattice, or a part of it */
    f.sites = f.expected = 0;
    assert_bad(&f, "its length is not a whole number of sites");
    f = field_of(12, 8, 13 * 8);
    f.is_box = true;
    f.lattice.dims = 1;
    assert_bad(&f, "its length does not match its sites");
}

TEST(test_unverified)
{
    struct limefile_field f = field_of(16, 576, 16 * 576);
    f.has_checksum = false;
    assert_unverified(&f, "its checksum cannot be understood");
    f.record.bytes = 1;
    assert_unverified(&f, "its checksum cannot be understood");
    f.checksum_ordinal = 0;
    assert_unverified(&f, "no checksum");
    f = field_of(0, 0, 80);
    assert_unverified(&f, "the size of a site is unknown");
    f = field_of(0, 8, 80);
    assert_unverified(&f, "one volume of a partitioned set; use 'lime join'");
    f.record.bytes = 0;
    assert_unverified(&f, "there are no data");
    f = field_of(12, 8, 12 * 8); /* a box outside of the lattice */
    f.is_box = true;
    assert_unverified(&f, "its place in the lattice is unknown");
    for (uint64_t bytes = 0; bytes < 4 * 576; bytes += 144) {
        f = field_of(16, 576, bytes);
        f.descriptions_differ = true;
        assert_unverified(&f, "its descriptions disagree on the size of a site");
    }
}

/* ---- with data ---- */

static int file_with(const unsigned char *data, size_t n)
{
    char path[] = "/tmp/limefs-test-proof-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(pwrite(fd, data, n, AT), n);
    return fd;
}

static int verify(int fd, const struct limefile_field *f, struct limefile_field *as,
                  struct limefile_checksum *sum)
{
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    return limefile_field_verify(&file.source, f, 2, NULL, NULL, as, sum);
}

/* Data that were summed as `sites` sites are right under any description that gives them. */
TEST(test_verify)
{
    unsigned char data[32 * 288];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * i >> 5);
    int fd = file_with(data, sizeof data);
    static const uint64_t written[][2] = {{32, 288}, {16, 576}};
    struct limefile_field as;
    struct limefile_checksum sum;
    for (size_t i = 0; i < 2; i++) {
        struct limefile_field f = field_of(16, 288, sizeof data);
        limefile_checksum_add(&f.checksum, data, written[i][0], written[i][1], 0);
        assert_int_equal(verify(fd, &f, &as, &sum), 1);
        assert_int_equal(as.sites, written[i][0]);
        assert_int_equal(as.site_bytes, written[i][1]);
        assert_int_equal(sum.suma, f.checksum.suma);
        f.record.bytes -= 288; /* truncated */
        assert_int_equal(verify(fd, &f, &as, &sum), 0);
        assert_int_equal(as.sites, 31);
        f.record.bytes -= 1;
        assert_int_equal(verify(fd, &f, &as, &sum), LIMEFILE_E_STATE);
        f.record.bytes = 64 * 288;
        assert_int_equal(verify(fd, &f, &as, &sum), LIMEFILE_E_SHRUNK);
    }
    close(fd);
}
