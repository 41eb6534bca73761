/* test_sum.c - sums of records by any number of threads, against an oracle without isa-l */
#define _GNU_SOURCE
#include "made.h"

#include <stdatomic.h>
#include <sys/syscall.h>

/* ---- failing reads: this pread() replaces libc's ---- */

static atomic_int reads_left = -1; /* then reads fail; -1: never */
static atomic_bool in_bits;        /* every second read is interrupted, the others are short */
static atomic_uint reads;

ssize_t pread(int fd, void *data, size_t n, off_t offset)
{
    unsigned number = atomic_fetch_add(&reads, 1);
    if (atomic_load(&reads_left) >= 0 && atomic_fetch_sub(&reads_left, 1) <= 0) {
        atomic_store(&reads_left, 0);
        errno = EIO;
        return -1;
    }
    if (atomic_load(&in_bits) && number % 2) {
        errno = EINTR;
        return -1;
    }
    if (atomic_load(&in_bits))
        n = n / 3 + 1;
    return syscall(SYS_pread64, fd, data, n, offset);
}

/* ---- the oracle: bit by bit, site by site ---- */

static uint32_t crc_table[256];

__attribute__((constructor)) static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        crc_table[i] = c;
    }
}

static uint32_t oracle_crc(const unsigned char *data, size_t n)
{
    uint32_t c = 0xffffffffu;
    while (n--)
        c = c >> 8 ^ crc_table[(c ^ *data++) & 0xff];
    return ~c;
}

/* Returns the rank of a site by counting coordinates. */
static uint64_t oracle_rank(const struct limefile_field *f, uint64_t site)
{
    uint64_t at[LIMEFILE_DIMS_MAX], rank = 0;
    if (!f->is_box)
        return site;
    memcpy(at, f->lower, sizeof at);
    while (site--)
        for (unsigned d = 0; d < f->lattice.dims && ++at[d] > f->upper[d]; d++)
            at[d] = f->lower[d];
    for (unsigned d = f->lattice.dims; d-- > 0;)
        rank = rank * f->lattice.extent[d] + at[d];
    return rank;
}

static struct limefile_checksum oracle(const struct limefile_field *f,
                                       const unsigned char *data)
{
    struct limefile_checksum sum = {0};
    for (uint64_t i = 0; i < f->sites; i++) {
        uint64_t c = oracle_crc(data + i * f->site_bytes, f->site_bytes);
        uint64_t rank = oracle_rank(f, i), a = rank % 29, b = rank % 31;
        sum.suma ^= (uint32_t)(c << a | c >> (32 - a));
        sum.sumb ^= (uint32_t)(c << b | c >> (32 - b));
    }
    return sum;
}

static void assert_same(struct limefile_checksum is, struct limefile_checksum want)
{
    assert_int_equal(is.suma, want.suma);
    assert_int_equal(is.sumb, want.sumb);
}

/* ---- progress ---- */

struct progress {
    uint64_t bytes;
    atomic_int inside;
    bool both; /* two calls at once; the test's own thread asserts it */
};

static bool count_progress(void *context, uint64_t more)
{
    struct progress *progress = context;
    if (atomic_fetch_add(&progress->inside, 1) != 0)
        progress->both = true;
    progress->bytes += more;
    atomic_fetch_sub(&progress->inside, 1);
    return true;
}

static int sum_file(int fd, const struct limefile_field *f, unsigned threads,
                    limefile_sum_progress_fn *progress, void *context,
                    struct limefile_checksum *sum)
{
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    return limefile_field_sum(&file.source, f, threads, progress, context, sum);
}

static struct limefile_checksum sum_of(const struct made *m, unsigned threads)
{
    struct limefile_checksum sum = {1, 2};
    struct progress progress = {0};
    assert_int_equal(sum_file(m->fd, &m->field, threads, count_progress, &progress, &sum), 0);
    assert_int_equal(progress.bytes, m->field.record.bytes);
    assert_false(progress.both);
    return sum;
}

/* ---- tests ---- */

/* CRC-32 of "123456789" is 0xcbf43926, by definition of the polynomial. */
TEST(test_by_hand)
{
    static const uint32_t crc = 0xcbf43926;
    struct limefile_checksum sum = {0};
    limefile_checksum_add(&sum, "123456789", 1, 9, 0);
    assert_int_equal(sum.suma, crc);
    assert_int_equal(sum.sumb, crc);
    sum = (struct limefile_checksum){0};
    limefile_checksum_add(&sum, "123456789", 1, 9, 29); /* mod 29: 0, mod 31: 29 */
    assert_int_equal(sum.suma, crc);
    assert_int_equal(sum.sumb, crc << 29 | crc >> 3);
    sum = (struct limefile_checksum){0};
    /* 2^64 - 1 mod 29 is 23, mod 31 is 15 */
    limefile_checksum_add(&sum, "123456789", 1, 9, UINT64_MAX);
    assert_int_equal(sum.suma, crc << 23 | crc >> 9);
    assert_int_equal(sum.sumb, crc << 15 | crc >> 17);
    sum = (struct limefile_checksum){0};
    limefile_checksum_add(&sum, "123456789123456789", 2, 9, 28); /* ranks 28 and 29 */
    assert_int_equal(sum.suma, (crc << 28 | crc >> 4) ^ crc);
    assert_int_equal(sum.sumb, (crc << 28 | crc >> 4) ^ (crc << 29 | crc >> 3));
    struct limefile_checksum before = sum;
    limefile_checksum_add(&sum, NULL, 0, 9, 5);
    assert_memory_equal(&sum, &before, sizeof sum);
}

TEST(test_any_threads)
{
    static const struct {
        uint64_t site_bytes, sites;
    } shapes[] = {
        {1, 100000},  {3, 99999},   {4, 300000},  {5, 2},       {8, 400001},  {12, 1},
        {15, 70001},  {16, 200000}, {24, 100003}, {72, 50000},  {96, 12288},  {192, 20011},
        {288, 16384}, {576, 8192},  {1152, 3001}, {4104, 1000}, {262136, 11}, {262144, 9},
        {262152, 13}, {1048576, 5}, {1048577, 4}, {1048568, 6}, {3000001, 3}, {5000000, 1},
    };
    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct made m = make(shapes[i].site_bytes, shapes[i].sites);
        struct limefile_checksum want = oracle(&m.field, m.data);
        for (unsigned threads = 0; threads <= 16; threads++)
            assert_same(sum_of(&m, threads), want);
        for (unsigned threads = 0; threads <= 3; threads++) {
            drop_cache(&m);
            assert_same(sum_of(&m, threads), want);
        }
        unmake(&m);
    }
}

TEST(test_half_in_memory)
{
    struct made m = make(576, 20000);
    struct limefile_checksum want = oracle(&m.field, m.data);
    for (int i = 0; i < 8; i++) {
        unsigned char buffer[65536];
        drop_cache(&m);
        for (int pages = 0; pages < 40; pages++)
            assert_true(pread(m.fd, buffer, sizeof buffer,
                              (off_t)(random_word() % m.field.record.bytes)) > 0);
        assert_same(sum_of(&m, (unsigned)i), want);
    }
    unmake(&m);
}

static void add_in_pieces(const struct made *m, struct limefile_checksum want)
{
    struct limefile_checksum odd = {0}, even = {0};
    for (uint64_t first = 0, n; first < m->field.sites; first += n) {
        n = 1 + random_word() % 97;
        if (n > m->field.sites - first)
            n = m->field.sites - first;
        limefile_field_add_sites(&m->field, random_word() & 1 ? &odd : &even,
                                 m->data + first * m->field.site_bytes, first, n);
    }
    assert_same((struct limefile_checksum){odd.suma ^ even.suma, odd.sumb ^ even.sumb}, want);
}

TEST(test_pieces)
{
    struct made m = make(24, 5000);
    struct limefile_checksum want = oracle(&m.field, m.data);
    for (int i = 0; i < 50; i++)
        add_in_pieces(&m, want);
    unmake(&m);
}

TEST(test_hypercubes)
{
    for (int i = 0; i < 60; i++) {
        struct limefile_field f = {.is_box = true, .lattice.dims = 1 + (unsigned)i % 6};
        uint64_t sites = 1;
        for (unsigned d = 0; d < f.lattice.dims; d++) {
            f.lattice.extent[d] = 1 + random_word() % 7;
            f.lower[d] = random_word() % f.lattice.extent[d];
            f.upper[d] = f.lower[d] + random_word() % (f.lattice.extent[d] - f.lower[d]);
            sites *= f.upper[d] - f.lower[d] + 1;
        }
        struct made m = make(i % 10 ? 8 + (uint64_t)i : 1100000 / (sites < 4 ? 1 : 20), sites);
        f.record = m.field.record;
        f.sites = sites;
        f.site_bytes = m.field.site_bytes;
        m.field = f;
        struct limefile_checksum want = oracle(&f, m.data);
        assert_same(sum_of(&m, 1), want);
        assert_same(sum_of(&m, 1 + (unsigned)i % 16), want);
        add_in_pieces(&m, want);
        unmake(&m);
    }
}

TEST(test_errors)
{
    struct limefile_checksum sum;
    for (int large = 0; large < 2; large++) {
        struct made m = make(large ? 3000000 : 576, large ? 3 : 20000);
        for (int cold = 0; cold < 2; cold++) {
            assert_int_equal(ftruncate(m.fd, (off_t)(AT + m.field.record.bytes - 1)), 0);
            if (cold)
                drop_cache(&m);
            for (unsigned threads = 0; threads < 5; threads++)
                assert_int_equal(sum_file(m.fd, &m.field, threads, NULL, NULL, &sum),
                                 LIMEFILE_E_SHRUNK);
        }
        int closed = fcntl(m.fd, F_DUPFD_CLOEXEC, 100);
        close(closed);
        assert_int_equal(sum_file(closed, &m.field, 2, NULL, NULL, &sum), -EBADF);
        m.field.sites++;
        assert_int_equal(sum_file(m.fd, &m.field, 2, NULL, NULL, &sum), LIMEFILE_E_STATE);
        m.field.sites = m.field.site_bytes = m.field.record.bytes = 0;
        assert_int_equal(sum_file(m.fd, &m.field, 2, NULL, NULL, &sum), LIMEFILE_E_STATE);
        unmake(&m);
    }
}

TEST(test_reading_fails)
{
    struct limefile_checksum sum;
    for (int large = 0; large < 2; large++) {
        struct made m = make(large ? 3000000 : 576, large ? 3 : 20000);
        struct limefile_checksum want = oracle(&m.field, m.data);
        for (int cold = 0; cold < 2; cold++)
            for (int i = 0; i < 8; i++) {
                if (cold)
                    drop_cache(&m);
                atomic_store(&reads_left, i);
                int err = sum_file(m.fd, &m.field, 1 + (unsigned)i % 3, NULL, NULL, &sum);
                atomic_store(&reads_left, -1);
                assert_int_equal(err, -EIO);
                atomic_store(&in_bits, true);
                assert_same(sum_of(&m, (unsigned)i), want);
                atomic_store(&in_bits, false);
            }
        unmake(&m);
    }
}
