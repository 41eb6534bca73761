/* layer.h - the sites of a block in one time slice, ready to be computed with; inside of this
 * room */
#ifndef LIMEFILE_PHYSICS_LAYER_H
#define LIMEFILE_PHYSICS_LAYER_H

#include "plan.h"

/* Zero to begin with. */
struct layer {
    double *tiles;     /* row after row along x, y fastest; -> LIMEFILE_PHYSICS_TILE_H */
    uint64_t block, t; /* which, */
    bool full;         /* if it has any */
};

/* What a thread reads with. */
struct reader {
    const struct limefile_sites *sites;
    const struct plan *plan;
    unsigned char *buffer; /* plan->read_bytes */
};

/* -ENOMEM. */
int layer_make(struct layer *, const struct plan *);
void layer_release(struct layer *);

/* What sites->read returns. The part's t does not count. */
int layer_load(struct layer *, const struct reader *, const struct part *, uint64_t block,
               uint64_t t);

/* The first tile of a row; y and z from the first of the block. Those that follow the block are
 * there too; where it has the whole dimension, the last is followed by the first. */
const double *layer_row(const struct layer *, const struct plan *, const struct part *,
                        uint64_t y, uint64_t z);

#endif
