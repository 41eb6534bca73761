/*
 * plan.h - the parts into which a lattice is divided to be measured; inside of this room
 *
 * A block is a box of the lattice in x, y and z. A thread goes through it in the order of t
 * with two layers in memory: the block in one time slice, and in the next. A layer also has the
 * sites that follow the block in x, in y and in z, unless the block has all sites of that
 * dimension.
 *
 * A step is a block in one time slice; steps are counted block after block, in each by t. A
 * cell is some steps in a row; sums are kept for each cell, so that they do not depend on which
 * thread has taken it. All this follows from the lattice alone.
 */
#ifndef LIMEFILE_PHYSICS_PLAN_H
#define LIMEFILE_PHYSICS_PLAN_H

#include "limesites.h"

enum {
    PLAN_CELLS_MAX = 65536,
};

struct plan {
    uint64_t extent[4];
    uint64_t edge[3];   /* of a block; those at the end may be smaller */
    uint64_t blocks[3]; /* how many there are */
    unsigned halo[3];   /* 1: a layer has the sites after the block, too */
    uint64_t steps, cells;
    uint64_t cell_steps; /* in each cell but the last */
    size_t row_tiles;    /* tiles of a row along x */
    size_t layer_rows;
    size_t read_bytes; /* room for what is read at once */
};

/* One step. */
struct part {
    uint64_t first[3], count[3]; /* of the block */
    uint64_t t;
};

/* -EINVAL if the extents or the precision are none. */
int plan_make(struct plan *, const struct limefile_sites *);

void plan_part(const struct plan *, uint64_t step, struct part *out);

#endif
