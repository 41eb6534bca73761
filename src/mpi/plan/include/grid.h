/*
 * grid.h - divide a lattice among ranks; no MPI, no I/O
 *
 * Ranks form a grid and are numbered in row-major order of the grid's dimensions, as MPI does
 * for a Cartesian communicator. So a rank's number determines the rank's position in the grid
 * and its box of the lattice, and no table of ranks is needed.
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
    int64_t parts[LEMON_BOX_DIMS];  /* number of parts into which each extent is divided */
    int64_t step[LEMON_BOX_DIMS];   /* difference of the rank numbers of adjacent parts */
};

/* lattice, parts: in the order of the communicator's dimensions. mapping[i]: the communicator's
 * dimension that is dimension i on disk; NULL: the same order. */
void lemon_grid_init(struct lemon_grid *, int dims, int64_t site_bytes, const int *lattice,
                     const int *parts, const int *mapping);

int64_t lemon_grid_ranks(const struct lemon_grid *);

/* Returns the bytes of the lattice, or -1 if an int64_t cannot hold them. */
int64_t lemon_grid_bytes(const struct lemon_grid *);

void lemon_grid_get_box(const struct lemon_grid *, int64_t rank, struct lemon_box *);

/* Returns the part of dimension d that contains the coordinate. */
int64_t lemon_grid_find_part(const struct lemon_grid *, int d, int64_t coordinate);

/* Iterates over all ranks that hold some of the bytes [from, to) of the lattice, and possibly
 * over others that hold none, each rank once. */
struct lemon_grid_walk {
    int dims;
    bool ended;
    int64_t rank; /* the current rank, unless `ended` */
    int64_t at[LEMON_BOX_DIMS], low[LEMON_BOX_DIMS], high[LEMON_BOX_DIMS], step[LEMON_BOX_DIMS];
};
void lemon_grid_walk_init(struct lemon_grid_walk *, const struct lemon_grid *, int64_t from,
                          int64_t to);
void lemon_grid_walk_next(struct lemon_grid_walk *);

/* Returns the bytes of the shortest run (box.h) in all parts; 0 if each part is one run. */
int64_t lemon_grid_shortest_run(const struct lemon_grid *);

/* Returns the number of runs in the part that has the most. */
int64_t lemon_grid_max_runs(const struct lemon_grid *);

#endif
