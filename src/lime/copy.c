/* copy.c - bytes from file to file */
#define _GNU_SOURCE
#include "limefile.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    STEP_BYTES = 64 << 20, /* between words of progress */
    BUFFER_BYTES = 1 << 20,
};

struct copy {
    int from, to;
    uint64_t from_at, to_at, left;
    void (*moved)(void *context, uint64_t more);
    void *context;
};

static void advance(struct copy *c, uint64_t n)
{
    c->from_at += n;
    c->to_at += n;
    c->left -= n;
    if (c->moved)
        c->moved(c->context, n);
}

/* Leaves off at whatever is unusual, where reading and writing goes on. */
static void share(struct copy *c)
{
    while (c->left) {
        off_t in = (off_t)c->from_at, out = (off_t)c->to_at;
        size_t step = c->left < STEP_BYTES ? (size_t)c->left : STEP_BYTES;
        ssize_t n = copy_file_range(c->from, &in, c->to, &out, step, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        advance(c, (uint64_t)n);
    }
}

static int read_and_write(struct copy *c)
{
    int err = 0;
    char *buffer = c->left ? malloc(BUFFER_BYTES) : NULL;
    if (c->left && !buffer)
        return -ENOMEM;
    while (!err && c->left) {
        size_t step = c->left < BUFFER_BYTES ? (size_t)c->left : BUFFER_BYTES;
        err = limefile_fd_read_exact(c->from, buffer, step, c->from_at);
        if (!err)
            err = limefile_fd_write(c->to, buffer, step, c->to_at);
        if (!err)
            advance(c, step);
    }
    free(buffer);
    return err;
}

int limefile_copy(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t n,
                  void (*moved)(void *context, uint64_t more), void *context)
{
    struct copy c = {from, to, from_at, to_at, n, moved, context};
    share(&c);
    return read_and_write(&c);
}
