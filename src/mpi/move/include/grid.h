/*
 * grid.h - how a lattice is divided between ranks; pure, no MPI.
 *
 * Ranks form a grid and are numbered in row-major order of its dimensions, as MPI numbers those
 * of a Cartesian communicator. So where a rank is in the grid, and with it the box that it
 * holds, follows from its number: nothing is kept for each rank.
 *
 * Dimensions are those of the disk, slowest first.
 */
#ifndef LEMON_GRID_H
#define LEMON_GRID_H

#include "box.h"

#include <stdbool.h>

struct lemon_grid {
    int dims;
    int64_t site_bytes;
    int64_t extent[LEMON_BOX_DIMS]; /* of the lattice, in sites */
    int64_t parts[LEMON_BOX_DIMS];  /* into which the ranks divide it */
    int64_t step[LEMON_BOX_DIMS];   /* what the next part adds to a rank's number */
};

/* parts: as the communicator's dimensions count them; mapping[i]: which of these dimension i of
 * the disk is; NULL: the same order. */
void lemon_grid_make(struct lemon_grid *, int dims, int64_t site_bytes, const int *lattice,
                     const int *parts, const int *mapping);

int64_t lemon_grid_ranks(const struct lemon_grid *);

/* Bytes of the lattice; -1 if they are more than an int64_t holds. */
int64_t lemon_grid_bytes(const struct lemon_grid *);

void lemon_grid_box(const struct lemon_grid *, int64_t rank, struct lemon_box *);

/* Which part of dimension d has the coordinate. */
int64_t lemon_grid_part(const struct lemon_grid *, int d, int64_t coordinate);

/* The ranks that may have something of bytes [from, to) of the lattice: all that have, and
 * perhaps some others. Each comes once. */
struct lemon_grid_walk {
    int dims;
    bool ended;
    int64_t rank; /* the one that is reached, if not ended */
    int64_t at[LEMON_BOX_DIMS], low[LEMON_BOX_DIMS], high[LEMON_BOX_DIMS], step[LEMON_BOX_DIMS];
};
void lemon_grid_walk_set(struct lemon_grid_walk *, const struct lemon_grid *, int64_t from,
                         int64_t to);
void lemon_grid_walk_next(struct lemon_grid_walk *);

/* The longest run of bytes that every rank's part consists of, if it is not a single run; 0:
 * each rank that has a part has a single run. */
int64_t lemon_grid_shortest_run(const struct lemon_grid *);

/* The most runs that any rank's part consists of. */
int64_t lemon_grid_most_runs(const struct lemon_grid *);

#endif
