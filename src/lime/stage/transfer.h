/*
 * transfer.h - move the bytes of a file through a ring of blocks: one thread reads them, the
 * caller takes sums of them in their order, one thread writes them.
 *
 *     stage_ring_begin(ring, &transfer)
 *     while ((block = stage_ring_next(ring))) { ... stage_ring_pass(ring); }
 *     err = stage_ring_end(ring)
 */
#ifndef STAGE_TRANSFER_H
#define STAGE_TRANSFER_H

#include "remote.h"

#include <pthread.h>

enum {
    STAGE_RING_MAX = 16,         /* blocks */
    STAGE_BLOCK_BYTES = 2 << 20, /* of a block without a job */
};

/* How to read and write a file: by a descriptor, and by one for O_DIRECT, or -1. */
struct stage_port {
    int fd, direct;
    struct stage_remote_file *remote; /* or NULL */
};

/* Opens port->direct where the file system has such a thing. */
void stage_port_open_direct(struct stage_port *, int flags);
void stage_port_close(struct stage_port *);

struct stage_block {
    char *data;
    struct stage_remote *lender; /* whose window holds the data, or NULL */
    size_t n;
    uint64_t offset; /* in the file */
};

struct stage_transfer {
    struct stage_port in;
    struct stage_port out; /* fd -1: nothing is written */
    uint64_t size;
    uint64_t kept; /* so many bytes, whole blocks, are in `out` already and are read there */

    /* The first failure. */
    int err;      /* 0, -errno or LIMEFILE_E_SHRUNK */
    bool writing; /* the write failed */
    uint64_t err_offset;
};

struct stage_ring {
    struct stage_block block[STAGE_RING_MAX];
    unsigned count;
    size_t block_bytes;
    char *memory; /* of all blocks, or NULL if a job's window holds them */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct stage_transfer *transfer;
    uint64_t blocks, read, passed, written; /* numbers of blocks */
    pthread_t reader, writer;
    bool has_reader, has_writer;
};

/* Blocks of a ring if so many files are under way at once. */
unsigned stage_ring_blocks(unsigned files);

/* Blocks from number `first` on of the job's window, or memory of its own if `remote` is NULL.
 * -ENOMEM. */
int stage_ring_init(struct stage_ring *, unsigned count, struct stage_remote *remote,
                    unsigned first);
void stage_ring_release(struct stage_ring *);

/* Starts the threads. `transfer` must last until stage_ring_end(). -ENOMEM. */
int stage_ring_begin(struct stage_ring *, struct stage_transfer *);

/* Returns the next block once it is read. NULL: there is none, or something has failed. */
const struct stage_block *stage_ring_next(struct stage_ring *);

/* Hands the block that stage_ring_next() has returned to the writer. */
void stage_ring_pass(struct stage_ring *);

/* Waits until all blocks that were passed are written (not synced), or something has failed. */
int stage_ring_drain(struct stage_ring *);

/* Stops after the blocks that were passed, waits for the threads, returns transfer->err. */
int stage_ring_end(struct stage_ring *);

#endif
