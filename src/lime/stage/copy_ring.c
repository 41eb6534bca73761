/* copy_ring.c - copy a file through a ring of blocks that are read, summed and written
 *
 * Direct I/O bypasses the page cache, so that the processors are free for the sums. Bytes that
 * a direct write can't handle (an incomplete last page, file systems without O_DIRECT) go
 * through the page cache, and the kernel starts to write them at once. */
#define _GNU_SOURCE
#include "copy_ring.h"
#include "descriptor.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ALL_BLOCKS = 32, /* blocks of all files in progress together */
    BLOCKS_MIN = 3,  /* blocks of one file: one each to read, sum and write */
};

void stage_port_open_direct(struct stage_port *port, int flags)
{
    port->direct_fd = limefile_reopen(port->fd, flags | O_DIRECT);
}

void stage_port_close(struct stage_port *port)
{
    if (port->direct_fd >= 0)
        close(port->direct_fd);
    if (port->fd >= 0)
        close(port->fd);
    port->direct_fd = port->fd = -1;
}

static int read_block_locally(const struct stage_port *port, const struct stage_block *b)
{
    const char *bytes; /* equals b->data, because blocks are page-aligned */
    ssize_t got = 0;
    if (port->direct_fd >= 0 && !limefile_is_cached(port->fd, b->offset, b->n))
        got = limefile_read_direct(port->direct_fd, b->data, b->n, b->offset, &bytes);
    size_t done = got > 0 ? (size_t)got : 0;
    if (done == b->n)
        return 0;
    return limefile_fd_read_exact(port->fd, b->data + done, b->n - done, b->offset + done);
}

/* Reads a block through the job if possible, otherwise locally. After a failure of the job, its
 * ranks may still write to the window, so the block gets new memory, of `bytes` bytes. */
static int read_block(const struct stage_port *port, struct stage_block *b, size_t bytes)
{
    if (b->job && port->remote &&
        stage_remote_read(port->remote, b->data, b->n, b->offset) == 0)
        return 0;
    if (b->job && stage_remote_has_failed(b->job, NULL)) {
        char *own = limefile_buffer_new(&bytes);
        if (!own)
            return -ENOMEM;
        b->data = own;
        b->job = NULL;
    }
    return read_block_locally(port, b);
}

/* Writes a block through the job if possible, otherwise locally. */
static int write_block(const struct stage_port *port, const struct stage_block *b)
{
    if (b->job && port->remote &&
        stage_remote_write(port->remote, b->data, b->n, b->offset) == 0)
        return 0;
    size_t whole = port->direct_fd >= 0 ? b->n & ~(size_t)(LIMEFILE_DIRECT_ALIGN - 1) : 0;
    if (whole) {
        int err = limefile_fd_write(port->direct_fd, b->data, whole, b->offset);
        if (err == -EINVAL)
            whole = 0; /* the file system refuses O_DIRECT */
        else if (err)
            return err;
    }
    return whole == b->n
               ? 0
               : limefile_fd_stream(port->fd, b->data + whole, b->n - whole, b->offset + whole);
}

static void stop_with_error(struct stage_ring *r, int err, bool writing, uint64_t offset)
{
    struct stage_transfer *t = r->transfer;
    pthread_mutex_lock(&r->lock);
    if (!t->err) {
        t->err = err;
        t->in_write = writing;
        t->err_offset = offset;
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

/* Waits until *reached exceeds `number`. Returns false if an error occurs first. */
static bool wait_above(struct stage_ring *r, const uint64_t *reached, uint64_t number)
{
    pthread_mutex_lock(&r->lock);
    while (*reached <= number && !r->transfer->err)
        pthread_cond_wait(&r->changed, &r->lock);
    bool good = *reached > number;
    pthread_mutex_unlock(&r->lock);
    return good;
}

static void increment(struct stage_ring *r, uint64_t *number)
{
    pthread_mutex_lock(&r->lock);
    ++*number;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static bool has_failed(struct stage_ring *r)
{
    pthread_mutex_lock(&r->lock);
    bool failed = r->transfer->err != 0;
    pthread_mutex_unlock(&r->lock);
    return failed;
}

/* The reader thread. It reads the kept bytes from the output, without the job. */
static void *read_blocks(void *ring)
{
    struct stage_ring *r = ring;
    const struct stage_transfer *t = r->transfer;
    struct stage_port kept = {.fd = t->out.fd, .direct_fd = t->out.direct_fd};
    for (uint64_t i = 0; i < r->blocks; i++) {
        struct stage_block *b = &r->block[i % r->count];
        if ((i >= r->count && !wait_above(r, &r->written, i - r->count)) || has_failed(r))
            break;
        b->offset = i * r->block_bytes;
        b->n = t->size - b->offset < r->block_bytes ? (size_t)(t->size - b->offset)
                                                    : r->block_bytes;
        int err = read_block(b->offset < t->kept ? &kept : &t->in, b, r->block_bytes);
        if (err)
            stop_with_error(r, err, false, b->offset);
        else
            increment(r, &r->read);
    }
    return NULL;
}

static void *write_blocks(void *ring)
{
    struct stage_ring *r = ring;
    const struct stage_transfer *t = r->transfer;
    for (uint64_t i = 0; i < r->blocks && wait_above(r, &r->submitted, i); i++) {
        const struct stage_block *b = &r->block[i % r->count];
        int err = t->out.fd >= 0 && b->offset >= t->kept ? write_block(&t->out, b) : 0;
        if (err) {
            stop_with_error(r, err, true, b->offset);
            break;
        }
        increment(r, &r->written);
    }
    return NULL;
}

unsigned stage_ring_blocks(unsigned files)
{
    unsigned share = ALL_BLOCKS / (files ? files : 1);
    return share < BLOCKS_MIN ? BLOCKS_MIN : share > STAGE_RING_MAX ? STAGE_RING_MAX : share;
}

int stage_ring_init(struct stage_ring *r, unsigned count, struct stage_remote *remote,
                    unsigned first)
{
    *r = (struct stage_ring){.count = count, .block_bytes = STAGE_BLOCK_BYTES};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    if (remote)
        r->block_bytes = stage_remote_block_bytes(remote);
    size_t bytes = count * r->block_bytes;
    if (!remote)
        r->memory = limefile_buffer_new(&bytes);
    char *at = remote ? stage_remote_window(remote) + first * r->block_bytes : r->memory;
    for (unsigned i = 0; at && i < count; i++)
        r->block[i] = (struct stage_block){.data = at + i * r->block_bytes, .job = remote};
    return at ? 0 : -ENOMEM;
}

void stage_ring_release(struct stage_ring *r)
{
    for (unsigned i = 0; !r->memory && i < r->count; i++)
        if (!r->block[i].job)
            free(r->block[i].data);
    free(r->memory);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
}

int stage_ring_begin(struct stage_ring *r, struct stage_transfer *t)
{
    r->transfer = t;
    r->blocks = t->size / r->block_bytes + (t->size % r->block_bytes != 0);
    r->read = r->submitted = r->written = 0;
    r->has_reader = pthread_create(&r->reader, NULL, read_blocks, r) == 0;
    r->has_writer = r->has_reader && pthread_create(&r->writer, NULL, write_blocks, r) == 0;
    if (r->has_writer)
        return 0;
    t->err = -ENOMEM;
    return stage_ring_end(r);
}

const struct stage_block *stage_ring_next(struct stage_ring *r)
{
    bool is_read = r->submitted < r->blocks && wait_above(r, &r->read, r->submitted);
    return is_read && !has_failed(r) ? &r->block[r->submitted % r->count] : NULL;
}

void stage_ring_submit(struct stage_ring *r)
{
    increment(r, &r->submitted);
}

int stage_ring_drain(struct stage_ring *r)
{
    return r->submitted && !wait_above(r, &r->written, r->submitted - 1) ? r->transfer->err : 0;
}

int stage_ring_end(struct stage_ring *r)
{
    int err = r->has_writer ? stage_ring_drain(r) : 0;
    bool is_complete = r->submitted == r->blocks;
    if (!err && !is_complete)
        stop_with_error(r, -EINTR, false, 0);
    if (r->has_reader)
        pthread_join(r->reader, NULL);
    if (r->has_writer)
        pthread_join(r->writer, NULL);
    return r->transfer->err;
}
