/*
 * copy_ring.h - copy a file through a ring of blocks: one thread reads them, the caller
 * computes sums over them in order, and one thread writes them.
 *
 *     stage_ring_begin(ring, &transfer)
 *     while ((block = stage_ring_next(ring))) { ... stage_ring_submit(ring); }
 *     err = stage_ring_end(ring)
 */
#ifndef STAGE_COPY_RING_H
#define STAGE_COPY_RING_H

#include "remote.h"

#include <pthread.h>

enum {
    STAGE_RING_MAX = 16,         /* blocks */
    STAGE_BLOCK_BYTES = 2 << 20, /* bytes of a block without a job */
};

/* How to read and write a file: a descriptor, and another one for O_DIRECT, or -1. */
struct stage_port {
    int fd, direct_fd;
    struct stage_remote_file *remote; /* or NULL */
};

/* Opens port->direct if the file system supports O_DIRECT. */
void stage_port_open_direct(struct stage_port *, int flags);
void stage_port_close(struct stage_port *);

struct stage_block {
    char *data;
    struct stage_remote *job; /* the job whose window holds the data, or NULL */
    size_t n;
    uint64_t offset; /* in the file */
};

struct stage_transfer {
    struct stage_port in;
    struct stage_port out; /* fd -1: nothing is written */
    uint64_t size;
    uint64_t kept; /* so many bytes, whole blocks, are in `out` already and are read from it */

    /* The first failure. */
    int err;       /* 0, -errno or LIMEFILE_E_SHRUNK */
    bool in_write; /* the write failed */
    uint64_t err_offset;
};

struct stage_ring {
    struct stage_block block[STAGE_RING_MAX];
    unsigned count;
    size_t block_bytes;
    char *memory; /* of all blocks; NULL: they are in a job's window */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct stage_transfer *transfer;
    uint64_t blocks, read, submitted, written; /* blocks in all, and blocks done */
    pthread_t reader, writer;
    bool has_reader, has_writer;
};

/* Returns the number of blocks per ring if `files` files are copied at once. */
unsigned stage_ring_blocks(unsigned files);

/* Uses the blocks from number `first` on of the job's window or, if `remote` is NULL, memory of
 * its own. Returns -ENOMEM. */
int stage_ring_init(struct stage_ring *, unsigned count, struct stage_remote *remote,
                    unsigned first);
void stage_ring_release(struct stage_ring *);

/* Starts the threads. `transfer` must last until stage_ring_end(). -ENOMEM. */
int stage_ring_begin(struct stage_ring *, struct stage_transfer *);

/* Waits for the next block to be read. NULL: no block is left, or an error has occurred. */
const struct stage_block *stage_ring_next(struct stage_ring *);

/* Passes the block that stage_ring_next() has returned to the writer. */
void stage_ring_submit(struct stage_ring *);

/* Waits until all passed blocks are written (not synced). Returns 0 or the error. */
int stage_ring_drain(struct stage_ring *);

/* Stops after the blocks that were passed, waits for the threads, returns transfer->err. */
int stage_ring_end(struct stage_ring *);

#endif
