/* copy_ring.h - copy a file through a ring of blocks: one thread reads them, the caller
 * computes sums over them in order, and one thread writes them.
 *
 *     stage_ring_begin(ring, &transfer)
 *     while ((block = stage_ring_next(ring))) { ... stage_ring_submit(ring); }
 *     err = stage_ring_end(ring) */
#ifndef STAGE_COPY_RING_H
#define STAGE_COPY_RING_H

#include "remote.h"

#include <pthread.h>

enum {
    STAGE_RING_MAX = 16,         /* maximum number of blocks */
    STAGE_BLOCK_BYTES = 2 << 20, /* bytes of a block, unless it is in a job's window */
};

/* The ways to read and write a file. */
struct stage_port {
    int fd, direct_fd;                /* direct_fd: the file with O_DIRECT, or -1 */
    struct stage_remote_file *remote; /* the file in a job (remote.h), or NULL; not owned */
};

/* Opens port->direct_fd, which becomes < 0 if the file system does not support O_DIRECT. */
void stage_port_open_direct(struct stage_port *, int flags);
void stage_port_close(struct stage_port *);

struct stage_block {
    char *data;
    struct stage_remote *job; /* the job whose window (remote.h) holds the data, or NULL */
    size_t n;                 /* bytes of data */
    uint64_t offset;          /* in the file */
};

struct stage_transfer {
    struct stage_port in;
    struct stage_port out; /* fd -1: nothing is written */
    uint64_t size;
    uint64_t kept; /* the first bytes, whole blocks: these are in `out`, and are read from it */

    /* The first failure. */
    int err;       /* 0, -errno or LIMEFILE_E_SHRUNK */
    bool in_write; /* true: of a write; false: of a read */
    uint64_t err_offset;
};

struct stage_ring {
    struct stage_block block[STAGE_RING_MAX];
    unsigned count;
    size_t block_bytes;
    char *memory; /* holds all blocks; NULL: they are in a job's window */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    struct stage_transfer *transfer;
    uint64_t blocks;                   /* number of blocks of the file */
    uint64_t read, submitted, written; /* numbers of blocks so far */
    pthread_t reader, writer;
    bool has_reader, has_writer;
};

/* Returns the number of blocks per ring if `files` files are copied at once. */
unsigned stage_ring_blocks(unsigned files);

/* Creates `count` blocks: in the window of `remote`, from the window's block `first` on; or, if
 * `remote` is NULL, in new memory. Returns 0 or -ENOMEM; release the ring after both. */
int stage_ring_init(struct stage_ring *, unsigned count, struct stage_remote *remote,
                    unsigned first);
void stage_ring_release(struct stage_ring *);

/* Starts the threads. `transfer` must live until stage_ring_end(). Returns 0 or -ENOMEM. */
int stage_ring_begin(struct stage_ring *, struct stage_transfer *);

/* Waits until the next block is read. NULL: no block is left, or an error has occurred. */
const struct stage_block *stage_ring_next(struct stage_ring *);

/* Passes the block that stage_ring_next() has returned to the writer. */
void stage_ring_submit(struct stage_ring *);

/* Waits until all submitted blocks are written (not synced). Returns 0 or the error. */
int stage_ring_drain(struct stage_ring *);

/* Waits until the submitted blocks are written, and stops the threads. Returns transfer->err:
 * -EINTR if no error has occurred but not all blocks of the file were submitted. */
int stage_ring_end(struct stage_ring *);

#endif
