/*
 * march.h - a thread's way through the steps of a plan; inside of this room
 */
#ifndef LIMEFILE_PHYSICS_MARCH_H
#define LIMEFILE_PHYSICS_MARCH_H

#include "layer.h"
#include "tally.h"

struct march {
    struct reader reader;
    tile_measure_fn *measure;
    double bound;
    struct layer layer[2];
    struct physics_tally tally;
};

/* -ENOMEM; release it whatever it was. */
int march_make(struct march *, const struct limefile_sites *, const struct plan *,
               double bound);
void march_release(struct march *);

/* One step; its sums are added to *cell. *sites: how many it has. Steps in a row are cheaper.
 */
int march_step(struct march *, uint64_t step, struct physics_sums *, uint64_t *sites);

#endif
