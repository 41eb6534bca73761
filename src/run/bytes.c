/* bytes.c - reads a record out of its container */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PARTS = 64,        /* of a vector that goes beyond the record's end */
    MOST = 0x7ffff000, /* bytes that the kernel moves at once */
};

/* As many parts as hold n bytes, the last one cut; 0: too many. */
static int cut(const struct iovec *iov, int count, size_t n, struct iovec out[PARTS])
{
    int used = 0;
    for (; used < count && used < PARTS && n > 0; used++) {
        out[used] = iov[used];
        if (out[used].iov_len > n)
            out[used].iov_len = n;
        n -= out[used].iov_len;
    }
    return n == 0 ? used : 0;
}

static bool read_all(int fd, const struct iovec *iov, int count, size_t n, uint64_t at)
{
    ssize_t got = count == 1 ? limefs_run_real()->pread(fd, iov->iov_base, n, (off_t)at)
                             : limefs_run_real()->preadv(fd, iov, count, (off_t)at);
    return got == (ssize_t)n;
}

/* fstat() of today's libc asks by an empty name, which takes the kernel 2 us more after a large
 * read. */
static bool look_at(int fd, struct stat *st)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return syscall(SYS_fstat, fd, st) == 0; /* where libc's structure is the kernel's */
#else
    return fstat(fd, st) == 0;
#endif
}

/* Afterwards the container must be what it was: what was read is then the record's, as it was
 * when the mount looked at it. */
static bool read_container(struct limefs_run_record *record, const struct iovec *iov, int count,
                           size_t n, uint64_t at)
{
    struct stat st;
    struct limefile_state state;
    int fd = atomic_load(&record->container);
    if (fd < 0 || (n > 0 && !read_all(fd, iov, count, n, record->offset + at)))
        return false;
    bool unchanged = look_at(fd, &st);
    if (unchanged) {
        limefile_state_of(&st, &state);
        unchanged = limefile_state_equal(&state, &record->state);
    }
    if (!unchanged)
        atomic_store(&record->changed, true);
    return unchanged;
}

/* Of `total` bytes at `at`, those that the record has. */
static bool read_range(struct limefs_run_record *record, const struct iovec *iov, int count,
                       size_t total, uint64_t at, ssize_t *got)
{
    struct iovec parts[PARTS];
    uint64_t left = at < record->bytes ? record->bytes - at : 0;
    if (total > left) {
        total = (size_t)left;
        count = cut(iov, count, total, parts);
        iov = parts;
        if (count == 0 && total > 0)
            return false;
    }
    *got = (ssize_t)total;
    return read_container(record, iov, count, total, at);
}

/* At the kernel's position, which it moves first: who reads at the same time by the same open
 * file, in this process or another, gets other bytes. What it is not used for is given back in
 * the same way. */
static bool read_on(int fd, struct limefs_run_record *record, const struct iovec *iov,
                    int count, size_t total, ssize_t *got)
{
    off_t end = lseek(fd, (off_t)total, SEEK_CUR);
    if (end < (off_t)total)
        return false;
    bool done = read_range(record, iov, count, total, (uint64_t)end - total, got);
    off_t back = (off_t)total - (done ? *got : 0);
    if (back)
        lseek(fd, -back, SEEK_CUR);
    return done;
}

static bool sum(const struct iovec *iov, int count, size_t *total)
{
    *total = 0;
    for (int i = 0; i < count; i++)
        if (__builtin_add_overflow(*total, iov[i].iov_len, total) || *total > MOST)
            return false;
    return count > 0 && *total > 0;
}

bool limefs_run_read(int fd, const struct iovec *iov, int count, off_t at, ssize_t *got)
{
    size_t total;
    int kept = errno;
    struct limefs_run_record *record = limefs_run_hold(fd);
    if (!record)
        return false;
    bool done = !atomic_load(&record->changed) && sum(iov, count, &total);
    if (done && !limefs_run_is(fd, record)) { /* closed unseen: it is another file */
        limefs_run_forget(fd);
        done = false;
    }
    if (done)
        done = at < 0 ? read_on(fd, record, iov, count, total, got)
                      : read_range(record, iov, count, total, (uint64_t)at, got);
    limefs_run_let_go(record);
    if (done)
        limefs_run_count_round((size_t)*got);
    errno = kept;
    return done;
}

ssize_t limefs_run_count(ssize_t got)
{
    if (got > 0)
        limefs_run_count_through((size_t)got);
    return got;
}

bool limefs_run_advise(int fd, off_t at, off_t bytes, int advice, int *err)
{
    struct limefs_run_record *record = limefs_run_hold(fd);
    if (!record)
        return false;
    int kept = errno, container = atomic_load(&record->container);
    bool ours = container >= 0 && !atomic_load(&record->changed) && at >= 0 && bytes >= 0 &&
                limefs_run_is(fd, record);
    if (ours && (uint64_t)at < record->bytes) {
        uint64_t left = record->bytes - (uint64_t)at;
        if (bytes == 0 || (uint64_t)bytes > left)
            bytes = (off_t)left;
        *err = limefs_run_real()->posix_fadvise(container, (off_t)record->offset + at, bytes,
                                                advice);
    }
    ours = ours && (uint64_t)at < record->bytes;
    limefs_run_let_go(record);
    errno = kept;
    return ours;
}
