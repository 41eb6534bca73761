/*
 * blocks.h - what is read ahead: blocks of files of faces, and the threads that bring them.
 *
 * A block is queued, read, and then given to the kernel, unless somebody has opened its file or
 * the kernel does not know the file yet: then it is kept for requests, for a short while.
 *
 * To take a block, the kernel locks pages; those that a request is to fill are locked until it
 * is answered. If a thread waited for one of these when the daemon is killed, neither would
 * ever end. So nothing is given of a file that is open, of which alone there are requests, and
 * it is opened once nothing is on its way.
 */
#ifndef LIMEFS_BLOCKS_H
#define LIMEFS_BLOCKS_H

#include "ahead.h"

enum {
    LIMEFS_BLOCK_BYTES = 1 << 20,
    LIMEFS_BLOCK_ROOM = LIMEFS_BLOCK_BYTES + 2 * LIMEFILE_DIRECT_ALIGN,
    LIMEFS_BLOCKS = 24,
    LIMEFS_AHEAD_THREADS = 4,
    LIMEFS_AHEAD_RUNS = 4,
};

enum limefs_block_state {
    LIMEFS_BLOCK_FREE,
    LIMEFS_BLOCK_QUEUED,
    LIMEFS_BLOCK_READING,
    LIMEFS_BLOCK_GIVING,
    LIMEFS_BLOCK_KEPT,
};

/* A file that blocks are of. */
struct limefs_ahead_target {
    struct limefs_file *file; /* our own, or of a stream; NULL: free */
    unsigned blocks;
    bool open;    /* somebody has it open, or had */
    bool unknown; /* to the kernel */
};

struct limefs_block {
    enum limefs_block_state state;
    struct limefs_ahead_target *target; /* unless it is free */
    uint64_t offset, order;
    size_t n, taken;
    char *place;                    /* where it is read, while somebody needs it, or NULL */
    const char *bytes;              /* there */
    struct limefile_identity stamp; /* of the container before it was read */
    unsigned readers;               /* who answer from it, also after it was dropped */
    double since;                   /* it is kept */
};

/* Files of a face that are opened one after another. */
struct limefs_ahead_run {
    uint64_t face;   /* the number by which the kernel knows it; 0: none */
    uint64_t number; /* of the file that was opened last */
    unsigned length;
    bool live;                  /* requests came: the kernel has not got all of it */
    uint64_t next, next_offset; /* not asked for yet */
    unsigned large;             /* files of which much was asked for first, one after another */
    bool small;                 /* its reader takes less at once than the kernel asks for */
    uint64_t first, end; /* files read around the mount's page cache; first = end: none */
};

struct limefs_ahead {
    struct limefs *fs;
    pthread_t threads[LIMEFS_AHEAD_THREADS];
    unsigned started;
    struct limefs_lock lock;
    pthread_cond_t work; /* something is queued, or it ends */
    pthread_cond_t read; /* a block was read, given or dropped */
    bool ending;
    uint64_t orders;
    unsigned next_run;
    char *room; /* places for all blocks; NULL: nothing was read yet */
    bool taken[LIMEFS_BLOCKS];
    struct limefs_block blocks[LIMEFS_BLOCKS];
    struct limefs_ahead_target targets[LIMEFS_BLOCKS];
    struct limefs_ahead_run runs[LIMEFS_AHEAD_RUNS];
};

/* Files that are to be closed once the lock is given back. */
struct limefs_closing {
    struct limefs_file *files[LIMEFS_BLOCKS];
    unsigned count;
};

/* Gives the lock back, and closes them. */
void limefs_blocks_unlock(struct limefs_ahead *, const struct limefs_closing *);

/* ---- all with the lock held ---- */

/* The one that has that byte of the file, or NULL. */
struct limefs_block *limefs_block_find(struct limefs_ahead *, const struct limefs_file *,
                                       uint64_t offset);

/* Those of a stream, by the place in the container. */
struct limefs_block *limefs_block_of_stream(struct limefs_ahead *, const struct limefs_file *,
                                            uint64_t at);
bool limefs_block_queue_stream(struct limefs_ahead *, struct limefs_file *,
                               const struct limefs_block *);

/* The next one to be read, or NULL. */
struct limefs_block *limefs_block_queued(struct limefs_ahead *);

/* One as described (offset, n). False: there is no room, or no memory. */
bool limefs_block_queue(struct limefs_ahead *, struct limefs_face *, uint64_t number,
                        const struct limefs_block *);

/* It is not needed; who answers from it may do so to the end. */
void limefs_block_drop(struct limefs_ahead *, struct limefs_block *, struct limefs_closing *);

/* Where it is read to; and no longer. */
void limefs_block_place(struct limefs_ahead *, struct limefs_block *);
void limefs_block_leave(struct limefs_ahead *, struct limefs_block *);

/* ---- without the lock, too ---- */

/* The container is still as it was when the block was read. */
bool limefs_block_stands(const struct limefs_file *, const struct limefs_block *);

#endif
