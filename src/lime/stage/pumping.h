/*
 * pumping.h - a pump, between what lives as long as it does (pump.c) and what its threads do
 * next (pumpwork.c).
 */
#ifndef PUMPING_H
#define PUMPING_H

#include "pump.h"

enum {
    BLOCK_BYTES = 1 << 20,
    BLOCKS = 32,
    BLOCKS_LEAST = 3, /* of a flow, however many there are: read, summed, written */
    BLOCKS_MOST = 16, /* of a flow, be it the only one: as many again as requests can have */
    READERS = 4,      /* requests that a disk has at once */
    WRITERS = 4,
    SUMMERS_MOST = 8,
};

enum need { NEED_SUM = 1, NEED_WRITE = 2 };

struct stage_block {
    char *data;
    struct stage_remote *lender; /* whose window it is in, or NULL */
    struct stage_flow *flow;     /* NULL: free */
    uint64_t number, offset;     /* in the flow */
    size_t n;
    unsigned needs, busy; /* what is still to do; how many threads are at it */
    bool ready;           /* filled */
};

struct stage_pump {
    pthread_mutex_t lock;
    pthread_cond_t to_read, to_write, to_sum;
    pthread_t threads[READERS + WRITERS + SUMMERS_MOST];
    unsigned thread_count, flow_count, free_count;
    struct stage_flow *flows;
    struct stage_block blocks[BLOCKS];
    size_t block_bytes;
    char *memory;
    bool stopped, ending;
};

/* All with the lock; it is let go for the work itself. */

bool stage_flow_is_over(const struct stage_flow *);
void stage_flow_fail(struct stage_pump *, struct stage_flow *, int err, bool writing,
                     uint64_t offset);
void stage_pump_wake(struct stage_pump *);

/* Gives a block back that nobody needs any more. */
void stage_block_settle(struct stage_pump *, struct stage_block *);

/* The next piece of work of a thread, or a wait for one. */
void stage_pump_read(struct stage_pump *);
void stage_pump_write(struct stage_pump *);
void stage_pump_sum(struct stage_pump *);

#endif
