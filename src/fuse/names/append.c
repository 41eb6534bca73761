/* append.c - translate between the kernel's and the real offsets of appended bytes */
#define _GNU_SOURCE
#include "append.h"
#include "limefile.h"
#include "told.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* From offset `from` on, as the kernel counts, the real offsets are larger by `by`. */
struct move {
    uint64_t from;
    int64_t by;
};

struct limefs_append {
    struct limefs_lock lock; /* guards the rest; held over I/O, before fs->lock */
    size_t count;
    struct move *moves;            /* ordered by `from` */
    uint64_t done;                 /* kernel's offset before which all its data has arrived */
    struct limefile_identity last; /* after this mount's last change, or the open */
};

/* ---- state ---- */

/* Locks the node's state; leave() unlocks it. NULL: the file was never opened to append. */
static struct limefs_append *enter(struct limefs_node *node)
{
    struct limefs_append *append = node->plain.append;
    if (append)
        limefs_lock(&append->lock);
    return append;
}

static void leave(struct limefs_append *append)
{
    if (append)
        limefs_unlock(&append->lock);
}

static bool asks_to_append(int flags)
{
    return (flags & (O_ACCMODE | O_APPEND | O_TRUNC)) == (O_WRONLY | O_APPEND);
}

static bool only_appended_to(const struct limefs_node *node)
{
    return node->plain.appenders == node->plain.writers;
}

/* Returns true if the change is so recent that a program is probably still writing. */
static bool is_new(const struct timespec *changed)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - changed->tv_sec <= 1;
}

bool limefs_append_may_open(struct limefs *fs, const struct limefs_node *node, int flags,
                            const struct timespec *changed)
{
    bool reads = (flags & O_ACCMODE) == O_RDONLY, appends = asks_to_append(flags);
    limefs_lock(&fs->lock);
    bool may = node->plain.opened
                   ? appends && is_new(changed) && node->plain.bytes != LIMEFS_GROWN
                   : appends || reads;
    limefs_unlock(&fs->lock);
    return may;
}

/* Without memory the file is written to like any other. */
static struct limefs_append *begin(struct limefs_node *node)
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

bool limefs_append_opened(struct limefs_node *node, int flags,
                          const struct limefile_identity *stamp)
{
    bool appends = asks_to_append(flags) && only_appended_to(node) && begin(node);
    if (appends && node->plain.writers == 0) {
        bool stands =
            node->plain.bytes == LIMEFS_AS_TOLD && node->plain.told_bytes == stamp->size;
        node->plain.append->last = stands ? *stamp : (struct limefile_identity){0};
        node->plain.append->done = (uint64_t)node->plain.told_bytes;
    }
    node->plain.writers++;
    node->plain.appenders += appends;
    node->plain.flushed = false;
    return appends;
}

/* The kernel keeps the length that it knows, so told_bytes stays. */
void limefs_append_closed(struct limefs_node *node, bool appends)
{
    node->plain.writers--;
    node->plain.appenders -= appends;
}

void limefs_append_flushed(struct limefs *fs, struct limefs_node *node)
{
    limefs_lock(&fs->lock);
    node->plain.flushed = true;
    limefs_unlock(&fs->lock);
}

bool limefs_append_holds(const struct limefs_node *node)
{
    return node->plain.writers > 0 && !(node->plain.flushed && only_appended_to(node));
}

void limefs_append_free(struct limefs_node *node)
{
    if (!node->plain.append)
        return;
    limefs_lock_destroy(&node->plain.append->lock);
    free(node->plain.append->moves);
    free(node->plain.append);
}

/* Returns the end that the kernel knows, before a change. *only: all writers append. */
static uint64_t known_end(struct limefs *fs, struct limefs_node *node, bool *only)
{
    limefs_lock(&fs->lock);
    node->plain.flushed = false;
    uint64_t end = (uint64_t)node->plain.told_bytes;
    *only = node->plain.appenders > 0 && only_appended_to(node);
    limefs_unlock(&fs->lock);
    return end;
}

/* Called after a failed write, too: the kernel has counted the bytes. */
static void grown_to(struct limefs *fs, struct limefs_node *node, uint64_t end)
{
    limefs_lock(&fs->lock);
    limefs_told_written(node);
    if (node->plain.told_bytes < (off_t)end)
        node->plain.told_bytes = (off_t)end;
    limefs_unlock(&fs->lock);
}

/* ---- translated offsets ---- */

/* Returns the real offset of a byte, and limits *n to the bytes that follow it there. */
static uint64_t place(const struct limefs_append *append, uint64_t at, size_t *n)
{
    size_t i = append ? append->count : 0;
    if (i == 0)
        return at;
    while (i > 0 && append->moves[i - 1].from > at)
        i--;
    if (i < append->count && append->moves[i].from - at < *n)
        *n = (size_t)(append->moves[i].from - at);
    return i > 0 ? at + (uint64_t)append->moves[i - 1].by : at;
}

static int move_from(struct limefs *fs, struct limefs_node *node, uint64_t at, uint64_t to)
{
    size_t n = 1;
    struct limefs_append *append = node->plain.append;
    if (place(append, at, &n) == to)
        return 0;
    struct move *moves = reallocarray(append->moves, append->count + 1, sizeof *moves);
    if (!moves)
        return -ENOMEM;
    moves[append->count++] = (struct move){at, (int64_t)(to - at)};
    append->moves = moves;
    limefs_lock(&fs->lock);
    node->plain.bytes = LIMEFS_MOVED;
    limefs_unlock(&fs->lock);
    return 0;
}

static ssize_t read_all(const struct limefs_append *append, int fd, char *buf, size_t n,
                        uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        size_t part = n - done;
        uint64_t at = place(append, offset + done, &part);
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
    struct limefs_append *append = enter(node);
    ssize_t got = read_all(append, fd, buf, n, offset);
    leave(append);
    return got;
}

static int write_known(const struct limefs_append *append, int fd, const char *buf, size_t n,
                       uint64_t offset)
{
    int err = 0;
    while (n > 0 && !err) {
        size_t part = n;
        uint64_t at = place(append, offset, &part);
        err = limefile_fd_write(fd, buf, part, at);
        buf += part, n -= part, offset += part;
    }
    return err;
}

static void note_ours(struct limefs_append *append, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0)
        append->last = limefile_identity_of(&st);
}

/* Returns true if no other program has changed the file since this mount did. */
static bool is_ours(const struct limefs_append *append, int fd)
{
    struct stat st;
    struct limefile_identity stamp;
    if (fstat(fd, &st) != 0)
        return false;
    stamp = limefile_identity_of(&st);
    return limefile_identity_same_data(&append->last, &stamp);
}

/* The descriptor's own position shows where the bytes are now; nothing else uses it. */
static int append_bytes(struct limefs *fs, struct limefs_node *node, int fd, const char *buf,
                        size_t n, uint64_t offset)
{
    int err = 0;
    while (n > 0 && !err) {
        struct iovec iov = {(char *)buf, n};
        ssize_t put = pwritev2(fd, &iov, 1, -1, RWF_APPEND);
        if (put < 0 && errno == EINTR)
            continue;
        off_t end = put < 0 ? -1 : lseek(fd, 0, SEEK_CUR);
        if (end < 0)
            return -errno;
        err = move_from(fs, node, offset, (uint64_t)(end - put));
        buf += put, n -= (size_t)put, offset += (uint64_t)put;
    }
    return err;
}

/* The kernel may send later bytes first: zeros take the place of those before them. */
static int append_zeros(struct limefs *fs, struct limefs_node *node, int fd, uint64_t from,
                        uint64_t to)
{
    static const char zeros[64 * 1024];
    uint64_t at = from;
    int err = 0;
    while (at < to && !err) {
        size_t n = to - at < sizeof zeros ? (size_t)(to - at) : sizeof zeros;
        err = append_bytes(fs, node, fd, zeros, n, at);
        at += n;
    }
    return err;
}

/* Returns how many of n bytes from `offset` on are before `end`. */
static size_t before(uint64_t end, size_t n, uint64_t offset)
{
    return offset >= end ? 0 : end - offset < n ? (size_t)(end - offset) : n;
}

/* The kernel sends whole pages. Old bytes of the file are not written if other programs have
 * changed it, as this would undo their changes. */
static int write_appended(struct limefs *fs, struct limefs_node *node, int fd, const char *buf,
                          size_t n, uint64_t offset, uint64_t end)
{
    struct limefs_append *append = node->plain.append;
    bool ours = is_ours(append, fd);
    size_t known = before(end, n, offset);
    size_t old = ours ? 0 : before(append->done, known, offset);
    int err = write_known(append, fd, buf + old, known - old, offset + old);
    if (!err && offset > end)
        err = append_zeros(fs, node, fd, end, offset);
    if (!err)
        err = append_bytes(fs, node, fd, buf + known, n - known, offset + known);
    if (ours)
        note_ours(append, fd);
    return err;
}

ssize_t limefs_append_write(struct limefs *fs, struct limefs_node *node, int fd,
                            const char *buf, size_t n, uint64_t offset)
{
    bool only = false;
    struct limefs_append *append = enter(node);
    uint64_t end = append ? known_end(fs, node, &only) : 0;
    int err = only ? write_appended(fs, node, fd, buf, n, offset, end)
                   : write_known(append, fd, buf, n, offset);
    /* After an error the kernel drops the data before it, too. */
    if (append && (err || offset <= append->done) && append->done < offset + n)
        append->done = offset + n;
    grown_to(fs, node, offset + n);
    leave(append);
    return err ? err : (ssize_t)n;
}

/* ---- lengths ---- */

/* Drops the moves of what is cut off. */
static int cut(struct limefs_append *append, int fd, uint64_t bytes)
{
    size_t n = 1;
    while (append && append->count > 0 && append->moves[append->count - 1].from >= bytes)
        append->count--;
    return ftruncate(fd, bytes ? (off_t)place(append, bytes - 1, &n) + 1 : 0) == 0 ? 0 : -errno;
}

/* Data that the kernel has not sent yet may belong before the new end. */
int limefs_append_cut(struct limefs *fs, struct limefs_node *node, int fd, uint64_t bytes)
{
    bool only;
    limefs_told_begin(fs, node);
    struct limefs_append *append = enter(node);
    bool ours = append && is_ours(append, fd);
    known_end(fs, node, &only);
    int err = cut(append, fd, bytes);
    if (!err && append && append->done > bytes)
        append->done = bytes;
    if (ours)
        note_ours(append, fd);
    limefs_lock(&fs->lock);
    if (!err)
        node->plain.told_bytes = (off_t)bytes;
    limefs_unlock(&fs->lock);
    leave(append);
    limefs_told_end(fs, node, fd, err);
    return err;
}

static int allocate(struct limefs *fs, struct limefs_node *node, int fd, int mode,
                    uint64_t offset, uint64_t bytes)
{
    bool only, longer = !(mode & FALLOC_FL_KEEP_SIZE);
    known_end(fs, node, &only);
    if (node->plain.append && node->plain.append->count > 0)
        return -EOPNOTSUPP;
    if (fallocate(fd, mode, (off_t)offset, (off_t)bytes) != 0)
        return -errno;
    grown_to(fs, node, longer ? offset + bytes : 0);
    return 0;
}

int limefs_append_allocate(struct limefs *fs, struct limefs_node *node, int fd, int mode,
                           uint64_t offset, uint64_t bytes)
{
    struct limefs_append *append = enter(node);
    int err = allocate(fs, node, fd, mode, offset, bytes);
    leave(append);
    return err;
}
