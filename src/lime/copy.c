/*
 * copy.c - copy bytes by copy_file_range between files, splice into a pipe, or read and write.
 *
 * copy_in_kernel() and splice_to_pipe() stop at an error or at the end of the input, and report
 * neither. copy_by_buffer() continues from there and reports an error that persists.
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
    SMALL_BYTES = 64 * 1024,  /* for so many or fewer, one read and one write are fastest */
    PIPE_BYTES = 1024 * 1024, /* largest pipe for an ordinary user */
    STEP_BYTES = 32 * 1024 * 1024, /* most per system call; each call reports progress */
};

static size_t next_bytes(const struct limefile_copy *c, size_t most)
{
    return c->left < most ? (size_t)c->left : most;
}

static void advance_copy(struct limefile_copy *c, size_t n)
{
    c->in_offset += n;
    if (c->out_offset != LIMEFILE_AT_POSITION)
        c->out_offset += (int64_t)n;
    c->left -= n;
    if (c->progress)
        c->progress(c->context, n);
}

/* Returns true if the caller should retry the write that failed with errno. */
static bool wait_until_writable(const struct limefile_copy *c)
{
    if (errno == EINTR)
        return true;
    if (errno != EAGAIN)
        return false;
    struct pollfd waiting = {.fd = c->out, .events = POLLOUT};
    return poll(&waiting, 1, -1) >= 0 || errno == EINTR;
}

static void copy_in_kernel(struct limefile_copy *c)
{
    while (c->left) {
        off_t in = (off_t)c->in_offset, out = (off_t)c->out_offset;
        ssize_t n = copy_file_range(c->in, &in, c->out,
                                    c->out_offset == LIMEFILE_AT_POSITION ? NULL : &out,
                                    next_bytes(c, STEP_BYTES), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        advance_copy(c, (size_t)n);
    }
}

static void splice_to_pipe(struct limefile_copy *c)
{
    int capacity = fcntl(c->out, F_GETPIPE_SZ);
    if (capacity >= 0 && capacity < PIPE_BYTES)
        fcntl(c->out, F_SETPIPE_SZ, PIPE_BYTES); /* fails at the user's limit: harmless */
    while (c->left) {
        off_t in = (off_t)c->in_offset;
        ssize_t n = splice(c->in, &in, c->out, NULL, next_bytes(c, PIPE_BYTES), SPLICE_F_MORE);
        if (n < 0 && wait_until_writable(c))
            continue;
        if (n <= 0)
            return;
        advance_copy(c, (size_t)n);
    }
}

int limefile_copy_write(struct limefile_copy *c, const void *bytes, size_t n)
{
    const char *data = bytes;
    while (n) {
        ssize_t written = c->out_offset == LIMEFILE_AT_POSITION
                              ? write(c->out, data, n)
                              : pwrite(c->out, data, n, (off_t)c->out_offset);
        if (written < 0 && wait_until_writable(c))
            continue;
        if (written <= 0) {
            c->out_failed = true;
            return written < 0 ? -errno : -EIO;
        }
        advance_copy(c, (size_t)written);
        data += written;
        n -= (size_t)written;
    }
    return 0;
}

static int copy_by_buffer(struct limefile_copy *c)
{
    struct limefile_fd file;
    limefile_fd_init(&file, c->in);
    struct limefile_source *source = c->source ? c->source : &file.source;
    size_t capacity = next_bytes(c, BUFFER_BYTES);
    char *buffer = capacity ? malloc(capacity) : NULL;
    int err = capacity && !buffer ? -ENOMEM : 0;
    while (!err && c->left) {
        ssize_t got = source->ops->read(source, buffer, next_bytes(c, capacity), c->in_offset);
        if (got == -EINTR)
            continue;
        err = got < 0    ? (int)got
              : got == 0 ? LIMEFILE_E_SHRUNK
                         : limefile_copy_write(c, buffer, (size_t)got);
    }
    free(buffer);
    return err;
}

int limefile_copy(struct limefile_copy *c)
{
    struct stat out;
    c->out_failed = false;
    if (c->source && limefile_source_fd(c->source) >= 0) {
        c->in = limefile_source_fd(c->source);
        c->source = NULL;
    }
    if (!c->source && c->left > SMALL_BYTES && fstat(c->out, &out) == 0) {
        posix_fadvise(c->in, (off_t)c->in_offset, (off_t)c->left, POSIX_FADV_SEQUENTIAL);
        if (S_ISREG(out.st_mode))
            copy_in_kernel(c);
        else if (S_ISFIFO(out.st_mode))
            splice_to_pipe(c);
    }
    return copy_by_buffer(c);
}
