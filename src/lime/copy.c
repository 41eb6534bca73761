/*
 * copy.c - copy bytes by copy_file_range between files, splice into a pipe, or read and write.
 *
 * by_copy_file_range() and by_splice() stop at any error or short result. by_read_and_write()
 * continues from there; if the error persists, it reports it.
 */
#define _GNU_SOURCE
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 256 * 1024,
    SMALL = 64 * 1024,             /* below, one read and one write are fastest */
    PIPE_BYTES = 1024 * 1024,      /* largest pipe for an ordinary user */
    STEP_BYTES = 32 * 1024 * 1024, /* per call, to report progress and let signals through */
};

static size_t step(const struct limefile_copy *c, size_t most)
{
    return c->left < most ? (size_t)c->left : most;
}

static void advance(struct limefile_copy *c, size_t n)
{
    c->in_offset += n;
    if (c->out_offset != LIMEFILE_AT_POSITION)
        c->out_offset += (int64_t)n;
    c->left -= n;
    if (c->moved)
        c->moved(c->context, n);
}

/* Returns true if the caller should retry after errno. */
static bool wait_until_writable(const struct limefile_copy *c)
{
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN)
        return false;
    struct pollfd waiting = {.fd = c->out, .events = POLLOUT};
    return poll(&waiting, 1, -1) >= 0 || errno == EINTR;
}

static void by_copy_file_range(struct limefile_copy *c)
{
    while (c->left) {
        off_t in = (off_t)c->in_offset, out = (off_t)c->out_offset;
        ssize_t n = copy_file_range(c->in, &in, c->out,
                                    c->out_offset == LIMEFILE_AT_POSITION ? NULL : &out,
                                    step(c, STEP_BYTES), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        advance(c, (size_t)n);
    }
}

static void by_splice(struct limefile_copy *c)
{
    int capacity = fcntl(c->out, F_GETPIPE_SZ);
    if (capacity >= 0 && capacity < PIPE_BYTES)
        fcntl(c->out, F_SETPIPE_SZ, PIPE_BYTES); /* fails at the user's limit: harmless */
    while (c->left) {
        off_t in = (off_t)c->in_offset;
        ssize_t n = splice(c->in, &in, c->out, NULL, step(c, PIPE_BYTES), SPLICE_F_MORE);
        if (n < 0 && wait_until_writable(c))
            continue;
        if (n <= 0)
            return;
        advance(c, (size_t)n);
    }
}

int limefile_copy_put(struct limefile_copy *c, const void *bytes, size_t n)
{
    const char *data = bytes;
    while (n) {
        ssize_t put = c->out_offset == LIMEFILE_AT_POSITION
                          ? write(c->out, data, n)
                          : pwrite(c->out, data, n, (off_t)c->out_offset);
        if (put < 0 && wait_until_writable(c))
            continue;
        if (put <= 0) {
            c->writing = true;
            return put < 0 ? -errno : -EIO;
        }
        advance(c, (size_t)put);
        data += put;
        n -= (size_t)put;
    }
    return 0;
}

static int by_read_and_write(struct limefile_copy *c)
{
    size_t room = step(c, BUFFER_BYTES);
    char *buffer = room ? malloc(room) : NULL;
    int err = room && !buffer ? -ENOMEM : 0;
    while (!err && c->left) {
        ssize_t got = pread(c->in, buffer, step(c, room), (off_t)c->in_offset);
        if (got < 0 && errno == EINTR)
            continue;
        err = got < 0    ? -errno
              : got == 0 ? LIMEFILE_E_SHRUNK
                         : limefile_copy_put(c, buffer, (size_t)got);
    }
    free(buffer);
    return err;
}

int limefile_copy(struct limefile_copy *c)
{
    struct stat out;
    c->writing = false;
    if (c->left > SMALL && fstat(c->out, &out) == 0) {
        posix_fadvise(c->in, (off_t)c->in_offset, (off_t)c->left, POSIX_FADV_SEQUENTIAL);
        if (S_ISREG(out.st_mode))
            by_copy_file_range(c);
        else if (S_ISFIFO(out.st_mode))
            by_splice(c);
    }
    return by_read_and_write(c);
}
