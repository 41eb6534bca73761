/* append.c - translate between the kernel's and the real offsets of appended bytes */
#define _GNU_SOURCE
#include "append.h"
#include "limefile.h"
#include "kernel_mtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* From offset `from` on, as the kernel counts, real offsets are larger by `distance`. */
struct shift {
    uint64_t from;
    int64_t distance;
};

struct limefs_append {
    struct limefs_lock lock; /* guards the rest; held over I/O, before fs->lock */
    size_t count;
    struct shift *shifts; /* ordered by `from` */
    uint64_t arrived_end; /* all of the kernel's data before this offset has been received */
    struct limefile_identity last_identity; /* after the open, or this mount's latest change */
};

/* Locks the node's state until unlock_append(). NULL: the file was never opened to append. */
static struct limefs_append *lock_append(struct limefs_node *node)
{
    struct limefs_append *append = node->plain.append;
    if (append)
        limefs_lock(&append->lock);
    return append;
}

static void unlock_append(struct limefs_append *append)
{
    if (append)
        limefs_unlock(&append->lock);
}

static bool opens_to_append(int flags)
{
    return (flags & (O_ACCMODE | O_APPEND | O_TRUNC)) == (O_WRONLY | O_APPEND);
}

static bool has_only_appenders(const struct limefs_node *node)
{
    return node->plain.appenders == node->plain.writers;
}

/* Returns true if the change is so recent that a program is probably still writing. */
static bool is_recent(const struct timespec *changed)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - changed->tv_sec <= 1;
}

bool limefs_append_allows_open(struct limefs *fs, const struct limefs_node *node, int flags,
                               const struct timespec *changed)
{
    bool reads = (flags & O_ACCMODE) == O_RDONLY, appends = opens_to_append(flags);
    limefs_lock(&fs->lock);
    bool is_allowed = node->plain.was_opened ? appends && is_recent(changed) &&
                                                   node->plain.bytes != LIMEFS_BYTES_GROWN
                                             : appends || reads;
    limefs_unlock(&fs->lock);
    return is_allowed;
}

/* Gets or creates the node's state. NULL: no memory; the file is treated like any other. */
static struct limefs_append *get_append(struct limefs_node *node)
{
    if (node->plain.append)
        return node->plain.append;
    struct limefs_append *append = calloc(1, sizeof *append);
    if (!append)
        return NULL;
    limefs_lock_init(&append->lock, LIMEFS_LOCK_APPEND);
    node->plain.append = append;
    return append;
}

bool limefs_append_note_open(struct limefs_node *node, int flags,
                             const struct limefile_identity *stamp)
{
    bool appends = opens_to_append(flags) && has_only_appenders(node) && get_append(node);
    if (appends && node->plain.writers == 0) {
        bool is_known = node->plain.bytes == LIMEFS_BYTES_AS_REPORTED &&
                        node->plain.kernel_size == stamp->size;
        node->plain.append->last_identity = is_known ? *stamp : (struct limefile_identity){0};
        node->plain.append->arrived_end = (uint64_t)node->plain.kernel_size;
    }
    node->plain.writers++;
    node->plain.appenders += appends;
    node->plain.flushed = false;
    return appends;
}

/* The kernel keeps the length that it knows, so kernel_size stays. */
void limefs_append_note_close(struct limefs_node *node, bool appends)
{
    node->plain.writers--;
    node->plain.appenders -= appends;
}

void limefs_append_note_flush(struct limefs *fs, struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    node->plain.flushed = true;
    limefs_unlock(&fs->lock);
}

bool limefs_append_needs_node(const struct limefs_node *node)
{
    return node->plain.writers > 0 && !(node->plain.flushed && has_only_appenders(node));
}

void limefs_append_free(struct limefs_node *node)
{
    if (!node->plain.append)
        return;
    limefs_lock_destroy(&node->plain.append->lock);
    free(node->plain.append->shifts);
    free(node->plain.append);
}

/* Before a change: returns the end that the kernel knows. *only_appends: all writers append. */
static uint64_t begin_change(struct limefs *fs, struct limefs_node *node, bool *only_appends)
{
    limefs_lock(&fs->lock);
    node->plain.flushed = false;
    uint64_t end = (uint64_t)node->plain.kernel_size;
    *only_appends = node->plain.appenders > 0 && has_only_appenders(node);
    limefs_unlock(&fs->lock);
    return end;
}

/* Notes the end that the kernel now knows. The kernel counts even bytes of a failed write. */
static void note_growth(struct limefs *fs, struct limefs_node *node, uint64_t end)
{
    limefs_lock(&fs->lock);
    limefs_kernel_mtime_note_write(node);
    if (node->plain.kernel_size < (off_t)end)
        node->plain.kernel_size = (off_t)end;
    limefs_unlock(&fs->lock);
}

/* ---- translated offsets ---- */

/* Returns the real offset of the byte at the kernel's offset `at`. Limits *n to the number of
 * bytes from `at` on that are in one piece in the file. */
static uint64_t real_offset(const struct limefs_append *append, uint64_t at, size_t *n)
{
    size_t i = append ? append->count : 0;
    if (i == 0)
        return at;
    while (i > 0 && append->shifts[i - 1].from > at)
        i--;
    if (i < append->count && append->shifts[i].from - at < *n)
        *n = (size_t)(append->shifts[i].from - at);
    return i > 0 ? at + (uint64_t)append->shifts[i - 1].distance : at;
}

/* Notes that bytes from the kernel's offset `at` on are in the file from `to` on. */
static int add_shift(struct limefs *fs, struct limefs_node *node, uint64_t at, uint64_t to)
{
    size_t n = 1;
    struct limefs_append *append = node->plain.append;
    if (real_offset(append, at, &n) == to)
        return 0;
    struct shift *shifts = reallocarray(append->shifts, append->count + 1, sizeof *shifts);
    if (!shifts)
        return -ENOMEM;
    shifts[append->count++] = (struct shift){at, (int64_t)(to - at)};
    append->shifts = shifts;
    limefs_lock(&fs->lock);
    node->plain.bytes = LIMEFS_BYTES_MOVED;
    limefs_unlock(&fs->lock);
    return 0;
}

static ssize_t read_shifted(const struct limefs_append *append, int fd, char *buf, size_t n,
                            uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        size_t part = n - done;
        uint64_t at = real_offset(append, offset + done, &part);
        ssize_t got = limefile_fd_read(fd, buf + done, part, at);
        if (got < 0)
            return got;
        done += (size_t)got;
        if ((size_t)got < part)
            break;
    }
    return (ssize_t)done;
}

ssize_t limefs_append_read(struct limefs_node *node, int fd, void *buf, size_t n,
                           uint64_t offset)
{
    struct limefs_append *append = lock_append(node);
    ssize_t got = read_shifted(append, fd, buf, n, offset);
    unlock_append(append);
    return got;
}

static int write_shifted(const struct limefs_append *append, int fd, const char *buf, size_t n,
                         uint64_t offset)
{
    int err = 0;
    while (n > 0 && !err) {
        size_t part = n;
        uint64_t at = real_offset(append, offset, &part);
        err = limefile_fd_write(fd, buf, part, at);
        buf += part, n -= part, offset += part;
    }
    return err;
}

static void store_identity(struct limefs_append *append, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0)
        append->last_identity = limefile_identify(&st);
}

static bool is_unchanged_by_others(const struct limefs_append *append, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    struct limefile_identity stamp = limefile_identify(&st);
    return limefile_identity_same_data(&append->last_identity, &stamp);
}

/* Appends bytes that the kernel has at `offset`, and notes their offset in the file. The write
 * moves the descriptor's own position, which nothing else uses, to the end of these bytes. */
static int append_bytes(struct limefs *fs, struct limefs_node *node, int fd, const char *buf,
                        size_t n, uint64_t offset)
{
    int err = 0;
    while (n > 0 && !err) {
        struct iovec iov = {(char *)buf, n};
        ssize_t written = pwritev2(fd, &iov, 1, -1, RWF_APPEND);
        if (written < 0 && errno == EINTR)
            continue;
        off_t end = written < 0 ? -1 : lseek(fd, 0, SEEK_CUR);
        if (end < 0)
            return -errno;
        err = add_shift(fs, node, offset, (uint64_t)(end - written));
        buf += written, n -= (size_t)written, offset += (uint64_t)written;
    }
    return err;
}

/* Appends zeros for bytes [from, to), because the kernel may send later bytes before these. */
static int append_zeros(struct limefs *fs, struct limefs_node *node, int fd, uint64_t from,
                        uint64_t to)
{
    static const char zeros[64 * 1024];
    int err = 0;
    while (from < to && !err) {
        size_t n = to - from < sizeof zeros ? (size_t)(to - from) : sizeof zeros;
        err = append_bytes(fs, node, fd, zeros, n, from);
        from += n;
    }
    return err;
}

/* Returns how many of n bytes from `offset` on precede `end`. */
static size_t bytes_before(uint64_t end, size_t n, uint64_t offset)
{
    return offset >= end ? 0 : end - offset < n ? (size_t)(end - offset) : n;
}

/* Writes bytes, and appends those from offset `end` on. The kernel sends whole pages, which may
 * begin with old bytes of the file (before arrived_end). If other programs have changed the
 * file, skips the old bytes, because writing them would undo these changes. */
static int write_appended(struct limefs *fs, struct limefs_node *node, int fd, const char *buf,
                          size_t n, uint64_t offset, uint64_t end)
{
    struct limefs_append *append = node->plain.append;
    bool is_unchanged = is_unchanged_by_others(append, fd);
    size_t known = bytes_before(end, n, offset);
    size_t old = is_unchanged ? 0 : bytes_before(append->arrived_end, known, offset);
    int err = write_shifted(append, fd, buf + old, known - old, offset + old);
    if (!err && offset > end)
        err = append_zeros(fs, node, fd, end, offset);
    if (!err)
        err = append_bytes(fs, node, fd, buf + known, n - known, offset + known);
    if (is_unchanged)
        store_identity(append, fd);
    return err;
}

ssize_t limefs_append_write(struct limefs *fs, struct limefs_node *node, int fd,
                            const char *buf, size_t n, uint64_t offset)
{
    bool only_appends = false;
    struct limefs_append *append = lock_append(node);
    uint64_t end = append ? begin_change(fs, node, &only_appends) : 0;
    int err = only_appends ? write_appended(fs, node, fd, buf, n, offset, end)
                           : write_shifted(append, fd, buf, n, offset);
    /* After an error, the kernel drops earlier data, too, so that data will never arrive. */
    if (append && (err || offset <= append->arrived_end) && append->arrived_end < offset + n)
        append->arrived_end = offset + n;
    note_growth(fs, node, offset + n);
    unlock_append(append);
    return err ? err : (ssize_t)n;
}

/* Truncates the file, and drops the shifts of bytes that this cuts off. */
static int truncate_file(struct limefs_append *append, int fd, uint64_t bytes)
{
    size_t n = 1;
    while (append && append->count > 0 && append->shifts[append->count - 1].from >= bytes)
        append->count--;
    off_t end = bytes ? (off_t)real_offset(append, bytes - 1, &n) + 1 : 0;
    return ftruncate(fd, end) == 0 ? 0 : -errno;
}

/* If the file grows, arrived_end stays: the kernel may still send data before the new end. */
int limefs_append_truncate(struct limefs *fs, struct limefs_node *node, int fd, uint64_t bytes)
{
    bool only_appends;
    limefs_kernel_mtime_change_begin(fs, node);
    struct limefs_append *append = lock_append(node);
    bool is_unchanged = append && is_unchanged_by_others(append, fd);
    begin_change(fs, node, &only_appends);
    int err = truncate_file(append, fd, bytes);
    if (!err && append && append->arrived_end > bytes)
        append->arrived_end = bytes;
    if (is_unchanged)
        store_identity(append, fd);
    limefs_lock(&fs->lock);
    if (!err)
        node->plain.kernel_size = (off_t)bytes;
    limefs_unlock(&fs->lock);
    unlock_append(append);
    limefs_kernel_mtime_change_end(fs, node, fd, err);
    return err;
}

static int allocate_range(struct limefs *fs, struct limefs_node *node, int fd, int mode,
                          uint64_t offset, uint64_t bytes)
{
    bool only_appends, extends = !(mode & FALLOC_FL_KEEP_SIZE);
    begin_change(fs, node, &only_appends);
    if (node->plain.append && node->plain.append->count > 0)
        return -EOPNOTSUPP;
    if (fallocate(fd, mode, (off_t)offset, (off_t)bytes) != 0)
        return -errno;
    note_growth(fs, node, extends ? offset + bytes : 0);
    return 0;
}

int limefs_append_allocate(struct limefs *fs, struct limefs_node *node, int fd, int mode,
                           uint64_t offset, uint64_t bytes)
{
    struct limefs_append *append = lock_append(node);
    int err = allocate_range(fs, node, fd, mode, offset, bytes);
    unlock_append(append);
    return err;
}
