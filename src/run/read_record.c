/* read_record.c - read the bytes of a record from its container */
#define _GNU_SOURCE
#include "limeplatform.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

enum {
    PARTS_MAX = 64,        /* maximum for a vector that is cut */
    READ_MAX = 0x7ffff000, /* bytes: the kernel cuts longer requests */
    NO_POSITION = LIMEFS_RUN_NO_POSITION,
    PENDING = NO_POSITION - 1, /* a thread is creating the descriptor */
};

#define BEHIND_END ((uint64_t)1 << 62) /* behind the end of any file */

/* A destination for `n` bytes, at most as many as the kernel reads at once. */
struct dest {
    const struct iovec *iov;
    int count;
    size_t n;
};

/* Returns the first n bytes of a destination, in `parts`; a count of 0: too many parts. */
static struct dest limit_dest(const struct dest *to, size_t n, struct iovec parts[PARTS_MAX])
{
    struct dest cut = {.iov = parts, .n = n};
    for (int i = 0; i < to->count && cut.count < PARTS_MAX && n > 0; i++) {
        const struct iovec *iov = &to->iov[i];
        parts[cut.count] = (struct iovec){iov->iov_base, iov->iov_len < n ? iov->iov_len : n};
        n -= parts[cut.count].iov_len;
        cut.count += parts[cut.count].iov_len > 0;
    }
    if (n > 0)
        cut.count = 0;
    return cut;
}

/* Uses system calls: in libc's functions a thread can be cancelled, and would not release the
 * record or restore the position. */
static ssize_t read_at(int fd, const struct dest *to, uint64_t at)
{
    return to->count == 1 ? syscall(SYS_pread64, fd, to->iov->iov_base, to->iov->iov_len, at)
                          : syscall(SYS_preadv, fd, to->iov, (long)to->count, at, 0L);
}

/* fstat() of recent libc passes an empty path, which is slower in the kernel. */
static int fast_fstat(int fd, struct stat *st)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return (int)syscall(SYS_fstat, fd, st); /* the kernel's structure is libc's */
#else
    return fstat(fd, st);
#endif
}

static bool is_container_unchanged(const struct limefs_run_record *record)
{
    struct stat st;
    int saved_errno = errno;
    if (fast_fstat(atomic_load(&record->container_fd), &st) != 0) {
        errno = saved_errno;
        return false;
    }
    struct limefile_identity now = limefile_identify(&st);
    return limefile_identity_equal(&now, &record->identity);
}

/* The bytes are right if the container is unchanged afterwards. False: the mount must read. */
static bool read_direct(struct limefs_run_record *record, const struct dest *to, uint64_t at)
{
    int container = atomic_load(&record->container_fd);
    if (container < 0 || read_at(container, to, record->offset + at) != (ssize_t)to->n)
        return false;
    bool unchanged = is_container_unchanged(record);
    if (!unchanged)
        atomic_store(&record->changed, true);
    return unchanged;
}

/* Reads from offset `at` of the data. *result: number of bytes before the end of the data. */
static bool read_payload(struct limefs_run_record *record, struct dest to, uint64_t at,
                         ssize_t *result)
{
    struct iovec parts[PARTS_MAX];
    uint64_t left = at < record->bytes ? record->bytes - at : 0;
    if (to.n > left && (to.n == READ_MAX || record->has_tail || at >= BEHIND_END))
        return false; /* the mount must read, or check the whole request */
    if (left == 0) {  /* only let the kernel check the addresses */
        to.n = 0;
        at = BEHIND_END - record->offset;
    } else if (to.n > left) {
        to = limit_dest(&to, (size_t)left, parts);
    }
    *result = (ssize_t)to.n;
    return to.count > 0 && read_direct(record, &to, at);
}

/* Reads from offset `at` of the mount's file: the head through the mount, the data directly. */
static bool read_as_file(int fd, struct limefs_run_record *record, const struct dest *to,
                         uint64_t at, ssize_t *result)
{
    if (at >= record->head)
        return read_payload(record, *to, at - record->head, result);
    uint64_t n = record->head - at;
    if (to->count != 1 || n >= to->n)
        return false;
    struct iovec head = {to->iov->iov_base, n},
                 rest = {(char *)to->iov->iov_base + n, to->n - n};
    if (read_at(fd, &(struct dest){&head, 1, n}, at) != (ssize_t)n ||
        !read_payload(record, (struct dest){&rest, 1, rest.iov_len}, 0, result))
        return false;
    *result += (ssize_t)n;
    return true;
}

/*
 * ---- the file position of a record, in programs with threads ----
 *
 * Between any two system calls of a read, another thread may open another file that gets the
 * record's descriptor number. So the library moves the position with a descriptor of its own,
 * which shares the open file and which the program does not know. The first such read of a
 * record creates this descriptor, which is closed with the record.
 *
 * Without threads there is no such descriptor: only a signal handler can come in between, and
 * the read continues after it.
 */

/* True if both descriptors share an open file; before Linux 6.10, if both are the record. */
static bool share_file(int fd, int own, const struct limefs_run_record *record)
{
    long same = syscall(SYS_fcntl, fd, F_DUPFD_QUERY, own);
    return same < 0 && errno == EINVAL ? limefs_run_is_record(fd, record) : same == 1;
}

/* If fd still has its entry afterwards, the duplicate shares the record's open file, because
 * the entry is removed before fd becomes another file. */
static int dup_position_fd(int fd, const struct limefs_run_record *record)
{
    uint64_t entry = limefs_run_entry(fd);
    if (limefs_run_entry_record(entry) != record || !limefs_run_is_record(fd, record))
        return NO_POSITION;
    int own = limefs_run_dup_high(fd);
    if (own < 0)
        return NO_POSITION;
    if (limefs_run_entry(fd) == entry && limefs_run_is_record(own, record)) {
        limefs_run_mark_library_fd(own, true);
        return own;
    }
    limefs_run_libc()->close(own);
    return NO_POSITION;
}

/* Only one thread creates the descriptor; others read through the mount until it is there. If
 * each made a duplicate, closing those left over would release the program's locks on the
 * record. Signals are blocked: a handler that jumps away would leave the descriptor open. */
static int create_position_fd(int fd, struct limefs_run_record *record)
{
    struct limefs_run_interrupts quiet;
    int own = NO_POSITION;
    limefs_run_block_interrupts(&quiet);
    if (limefs_run_owns_table() &&
        atomic_compare_exchange_strong(&record->position_fd, &own, PENDING)) {
        own = dup_position_fd(fd, record);
        atomic_store(&record->position_fd, own);
    }
    limefs_run_restore_interrupts(&quiet);
    return own;
}

/* Returns a descriptor by which to move the position; -1: read through the mount. */
static int get_position_fd(int fd, struct limefs_run_record *record)
{
    if (__libc_single_threaded)
        return limefs_run_is_record(fd, record) ? fd : -1;
    int own = atomic_load(&record->position_fd);
    if (own == NO_POSITION)
        own = create_position_fd(fd, record);
    return own >= 0 && limefs_run_is_record(own, record) && share_file(fd, own, record) ? own
                                                                                        : -1;
}

/* Returns how many of the `total` bytes that are requested at fd's position the library may
 * read itself: all, or those before the end of the data. If the request goes beyond that end,
 * returns 0 if the mount has bytes behind the data (has_tail) or if the request may have been
 * cut to READ_MAX: then the mount must read. Does not move the position. */
static size_t get_direct_bytes(int fd, const struct limefs_run_record *record, size_t total)
{
    uint64_t end = record->head + record->bytes;
    off_t at = lseek(fd, 0, SEEK_CUR);
    uint64_t left = at >= 0 && (uint64_t)at < end ? end - (uint64_t)at : 0;
    if (total <= left)
        return total;
    return total == READ_MAX || record->has_tail ? 0 : (size_t)left;
}

/* The descriptor that moves the position. As long as fd has this entry in the table, it refers
 * to the record. Entry 0: fd is the library's own descriptor. */
struct pos {
    int fd;
    uint64_t entry;
};

/* Moves the position by n bytes before they are read, so that other threads and processes with
 * the same open file read other bytes. Returns the offset of the n bytes, or -1. */
static off_t advance_position(const struct pos *pos, size_t n)
{
    off_t end = lseek(pos->fd, (off_t)n, SEEK_CUR);
    return end < (off_t)n ? -1 : end - (off_t)n;
}

/* Moves the position back by the bytes that were reserved at `at` and not read. If fd is now
 * another file (!is_record), does so only if advance_position() moved its position. */
static void restore_position(const struct pos *pos, bool is_record, size_t reserved, off_t at,
                             ssize_t result)
{
    size_t n = result > 0 ? (size_t)result : 0;
    if (n == reserved || (!is_record && lseek(pos->fd, 0, SEEK_CUR) != at + (off_t)reserved))
        return;
    lseek(pos->fd, (off_t)n - (off_t)reserved, SEEK_CUR);
}

/* Reads through the mount, as the container could not be read. Uses the reserved offset,
 * because another thread may have moved the position. */
static void read_by_mount(int fd, const struct dest *to, off_t at,
                          struct limefs_run_result *result)
{
    result->direct = false;
    result->bytes = read_at(fd, to, (uint64_t)at);
    result->error = errno;
}

/* Reads at the file position and moves it, at most to the end of the data. False: the mount
 * must read, or a signal handler of a program without threads has opened another file as fd. */
static bool read_at_position(int fd, const struct pos *pos, struct limefs_run_record *record,
                             struct dest to, struct limefs_run_result *result)
{
    struct iovec parts[PARTS_MAX];
    size_t left = get_direct_bytes(pos->fd, record, to.n);
    if (left < to.n)
        to = limit_dest(&to, left, parts);
    off_t at = to.count > 0 && left > 0 ? advance_position(pos, left) : -1;
    if (at < 0)
        return false;
    bool ours = pos->entry == 0 || limefs_run_entry(fd) == pos->entry;
    result->bytes = 0;
    result->direct = ours && read_as_file(pos->fd, record, &to, (uint64_t)at, &result->bytes);
    if (ours && !result->direct)
        read_by_mount(pos->fd, &to, at, result);
    restore_position(pos, ours, left, at, result->bytes);
    return ours;
}

/* Returns the size, at most READ_MAX; 0: no bytes, or an error that the kernel must report. */
static size_t get_total_bytes(const struct dest *to)
{
    size_t total = 0;
    for (int i = 0; i < to->count; i++)
        if (__builtin_add_overflow(total, to->iov[i].iov_len, &total) || total > SSIZE_MAX)
            return 0;
    return total < READ_MAX ? total : READ_MAX;
}

/* The vector is in the program's memory. A read behind the end makes the kernel check it. */
static bool is_valid_vector(int container, const struct dest *to)
{
    return syscall(SYS_preadv, container, to->iov, (long)to->count, BEHIND_END, 0L) == 0;
}

/* Returns the descriptor for a read, at the position or not; -1: read through the mount. */
static int get_read_fd(int fd, struct limefs_run_record *record, bool at_position)
{
    int read_fd = at_position ? get_position_fd(fd, record) : fd;
    bool is_record = (at_position && read_fd >= 0) || limefs_run_is_record(fd, record);
    if (!is_record)
        limefs_run_remove(fd); /* it was closed unnoticed and is another file */
    return is_record ? read_fd : -1;
}

static bool read_checked(int fd, uint64_t entry, struct limefs_run_record *record,
                         const struct dest *to, off_t at, struct limefs_run_result *result)
{
    if (atomic_load(&record->changed))
        return false;
    struct pos pos = {.fd = to->n > 0 ? get_read_fd(fd, record, at < 0) : -1};
    pos.entry = pos.fd == fd ? entry : 0;
    if (pos.fd < 0)
        return false;
    if (at < 0)
        return read_at_position(fd, &pos, record, *to, result);
    result->direct = read_as_file(fd, record, to, (uint64_t)at, &result->bytes) &&
                     limefs_run_entry(fd) == entry;
    return result->direct;
}

bool limefs_run_read(int fd, const struct iovec *iov, int count, bool vector, off_t at,
                     struct limefs_run_result *result)
{
    int saved_errno = errno;
    limefs_run_test_cancel();
    uint64_t entry = limefs_run_entry(fd);
    struct limefs_run_record *record = limefs_run_get_record(fd);
    struct dest to = {.iov = iov, .count = count};
    bool done = record && (!vector || is_valid_vector(atomic_load(&record->container_fd), &to));
    if (done) {
        to.n = get_total_bytes(&to);
        done = read_checked(fd, entry, record, &to, at, result);
    }
    if (record)
        limefs_run_put_record(record);
    if (done)
        limefs_run_count(result->bytes, result->direct);
    errno = done && result->bytes < 0 ? result->error : saved_errno;
    return done;
}
