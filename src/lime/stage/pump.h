/*
 * pump.h - moves the bytes of several files at once, each byte read once and written once, with
 * all sums taken in between
 *
 * A fixed number of blocks of memory go round: readers fill them, writers empty them, summers
 * look at them, each kind in threads of its own. A flow is one file on its way. Blocks are read
 * and written in any order and summed in the order of the file, each flow by one thread at a
 * time. A flow has only as many blocks as its share.
 *
 * All functions may be called from any thread.
 */
#ifndef STAGE_PUMP_H
#define STAGE_PUMP_H

#include "remote.h"
#include "sums.h"

#include <pthread.h>
#include <stdatomic.h>

struct stage_pump; /* the threads and the blocks */

/* -errno. `remote` may be NULL, else its window is where the blocks are while it works. */
int stage_pump_new(struct stage_remote *remote, struct stage_pump **out);
void stage_pump_free(struct stage_pump *); /* no flow may be in it */

/* The file's bytes [from, to) by a descriptor, and by one for O_DIRECT, or -1. */
struct stage_port {
    int fd, direct;
    struct stage_remote_file *remote; /* or NULL */
};

struct stage_block;
enum {
    STAGE_RING = 64, /* blocks of one flow that are under way */
};

/* The first part is the caller's, who fills it in and keeps it until stage_pump_end(). */
struct stage_flow {
    struct stage_port in; /* closed by the caller, as all others */
    struct stage_port
        kept;              /* the first kept_bytes (whole blocks) are there already: they are */
    uint64_t kept_bytes;   /* read from here and written nowhere */
    struct stage_port out; /* fd -1: nothing is written */
    uint64_t size;
    struct stage_sums *sums;
    struct stage_fieldsums *fields; /* or NULL */
    struct stage_datasums *data;
    atomic_uint_fast64_t *moved; /* is told of bytes that are done with; or NULL */
    uint64_t told;               /* how many */

    /* What became of it, after stage_pump_wait(). */
    int err;      /* 0, -errno or LIMEFILE_E_SHRUNK: the first failure */
    bool writing; /* it was the writing that failed */
    uint64_t err_offset;
    uint32_t *crc_at; /* [i]: sums->crc after i blocks */

    /* The pump's own. */
    struct stage_flow *next;
    uint64_t blocks, next_read, next_sum, done;
    unsigned in_flight;
    bool summing;
    struct stage_block *ring[STAGE_RING];
    bool finished[STAGE_RING];
    pthread_cond_t changed;
};

size_t stage_pump_block_bytes(const struct stage_pump *);

/* Sets a flow going. -ENOMEM. */
int stage_pump_begin(struct stage_pump *, struct stage_flow *);

/* Waits until all is done, or has failed and come to rest, or block `until` is done. Returns
 * how many bytes from the beginning on are done: read, summed, written (not synced). */
uint64_t stage_pump_wait(struct stage_pump *, struct stage_flow *, uint64_t until);
bool stage_pump_is_over(struct stage_pump *, struct stage_flow *);

/* It comes to rest with that error, unless it is over. */
void stage_pump_cancel(struct stage_pump *, struct stage_flow *, int err);

/* After it is over. */
void stage_pump_end(struct stage_pump *, struct stage_flow *);

/* All flows come to rest with -EINTR, those that come later, too. */
void stage_pump_stop(struct stage_pump *);

#endif
