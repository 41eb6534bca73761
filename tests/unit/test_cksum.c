/* test_cksum.c - cksum by any number of threads, against an oracle that divides bit by bit */
#define _GNU_SOURCE
#include "made.h"

static uint32_t oracle(const unsigned char *data, size_t n)
{
    uint32_t crc = 0;
    uint64_t length = n;
    for (size_t i = 0; i < n || length; i++) {
        unsigned char byte = i < n ? data[i] : (unsigned char)length;
        crc ^= (uint32_t)byte << 24;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 31 ? crc << 1 ^ UINT32_C(0x04c11db7) : crc << 1;
        if (i >= n)
            length >>= 8;
    }
    return ~crc;
}

static uint32_t cksum(const void *data, size_t n)
{
    struct limefile_cksum sum = {0};
    limefile_cksum_add(&sum, data, n);
    return limefile_cksum_result(&sum);
}

/* ---- tests ---- */

TEST(test_known)
{
    assert_int_equal(cksum("123456789", 9), 930766865);
    assert_int_equal(cksum("123456789", 9), 0x377a6011);
    assert_int_equal(cksum("", 0), 4294967295);
    assert_int_equal(cksum("\n", 1), 3515105045);
    static const unsigned char zeros[1000];
    for (size_t n = 0; n < sizeof zeros; n += 37)
        assert_int_equal(cksum(zeros, n), oracle(zeros, n));
}

TEST(test_pieces)
{
    for (size_t n = 0; n < 70000; n = n * 3 / 2 + 1) {
        unsigned char *data = random_bytes(n);
        struct limefile_cksum sum = {0};
        for (size_t at = 0, more; at < n; at += more) {
            more = 1 + random_word() % 5000;
            if (more > n - at)
                more = n - at;
            limefile_cksum_add(&sum, data + at, more);
        }
        assert_int_equal(sum.bytes, n);
        assert_int_equal(limefile_cksum_result(&sum), oracle(data, n));
        free(data);
    }
}

TEST(test_cut)
{
    enum { N = 5000 };
    unsigned char *data = random_bytes(N);
    for (size_t cut = 0; cut <= N; cut += 1 + random_word() % 40) {
        struct limefile_cksum whole = {0}, head = {0};
        limefile_cksum_add(&whole, data, N);
        limefile_cksum_add(&head, data, cut);
        limefile_cksum_cut(&whole, &head);
        assert_int_equal(whole.bytes, N - cut);
        assert_int_equal(limefile_cksum_result(&whole), oracle(data + cut, N - cut));
    }
    free(data);
}

static bool count_progress(void *context, uint64_t more)
{
    *(uint64_t *)context += more;
    return true;
}

static int record_cksum(int fd, const struct made *m, unsigned threads,
                        limefile_sum_progress_fn *progress, void *context, uint32_t *sum)
{
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    return limefile_record_cksum(&file.source, &m->field.record, threads, progress, context,
                                 sum);
}

TEST(test_records)
{
    static const size_t sizes[] = {0,       1,       7,       4096,    262143,  262144, 262145,
                                   1048575, 1048576, 1048577, 3000001, 5 << 20, 9437189};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct made m = make(sizes[i], 1);
        uint32_t want = oracle(m.data, sizes[i]), sum = 0;
        for (unsigned threads = 0; threads <= 9; threads++) {
            uint64_t progress = 0;
            if (threads % 4 == 3)
                drop_cache(&m);
            assert_int_equal(record_cksum(m.fd, &m, threads, count_progress, &progress, &sum),
                             0);
            assert_int_equal(sum, want);
            assert_int_equal(progress, sizes[i]);
        }
        unmake(&m);
    }
}

static bool stop(void *context, uint64_t more)
{
    (void)context, (void)more;
    return false;
}

TEST(test_errors)
{
    uint32_t sum;
    struct made m = make(9 << 20, 1);
    assert_int_equal(record_cksum(m.fd, &m, 2, stop, NULL, &sum), -EINTR);
    assert_int_equal(ftruncate(m.fd, AT + (9 << 20) - 1), 0);
    for (unsigned threads = 0; threads < 4; threads++)
        assert_int_equal(record_cksum(m.fd, &m, threads, NULL, NULL, &sum), LIMEFILE_E_SHRUNK);
    int closed = fcntl(m.fd, F_DUPFD_CLOEXEC, 100);
    close(closed);
    assert_int_equal(record_cksum(closed, &m, 2, NULL, NULL, &sum), -EBADF);
    unmake(&m);
}
