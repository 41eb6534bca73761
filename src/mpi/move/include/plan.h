/*
 * plan.h - who moves which range of the file; pure, no MPI, the same on every rank.
 *
 * Either every rank moves its own runs (direct), where these are long, and not short beside a
 * stripe that is known unless they are stripes; or the ranks exchange
 * data with some of them, the movers, which move long contiguous pieces. Nothing is ever read
 * in order to write.
 *
 * The pieces follow the grid. The ranks that differ only in the fastest dimensions of the grid
 * are a row; together they hold extents of the file, one for each coordinate of the slower
 * dimensions. The plan takes the shortest extents that reach 4 MiB: then few ranks exchange
 * with each other, and the more ranks there are, the more rows there are. An extent is one
 * piece, or several where it is long or where more ranks are to move; the pieces of a row are
 * dealt in the order of the file to movers of that row. Boundaries between pieces are shifted
 * to the nearest multiple of the stripe, so a piece may have a little of the neighbouring row,
 * too.
 *
 * A mover moves its pieces in turns, so that it needs memory for two turns only and exchanges
 * one of them while the file system has the other.
 *
 * MPI-IO is only ever asked for contiguous ranges. Left to interleave ranks by itself, Open MPI
 * 4.1's default component (OMPIO) silently corrupts the file, and ROMIO's collective buffering
 * does not scale (MPICH's issue 7935, from which the idea of rows is).
 *
 * Offsets count from the first byte of the lattice. Nothing here is kept for each rank.
 */
#ifndef LEMON_PLAN_H
#define LEMON_PLAN_H

#include "grid.h"

/* What the user wishes. */
struct lemon_plan_hints {
    int64_t stripe; /* 1 .. 1 GiB */
    bool striped;   /* that is known to be the file's, not just assumed */
    int64_t movers; /* at most so many; 0: no wish */
    int64_t round;  /* at most so many bytes in a turn, but at least a stripe; 0: no wish */
};

enum {
    LEMON_TURN_PIECES = 64, /* at most */
};

struct lemon_plan {
    struct lemon_grid grid;
    bool direct;
    int64_t ranks;
    int64_t bytes; /* of the lattice */
    int64_t base;  /* where it starts in the file */
    int64_t stripe;
    int cut;             /* extents are parts of this dimension, and all of the faster ones */
    int64_t inner;       /* bytes of one step in dimension `cut` */
    int64_t extents;     /* in the lattice */
    int64_t pieces;      /* of an extent */
    int64_t rows, width; /* width: ranks in a row */
    int64_t row_movers;  /* of a row, at most width */
    int64_t movers;      /* of all; fewer than rows * row_movers if the user wishes so */
    int64_t turn_pieces; /* of a mover in a turn */
    int64_t turns;       /* each mover's, some of which may be empty */
};

/* base: where the lattice starts in the file. */
void lemon_plan_make(struct lemon_plan *, const struct lemon_grid *, int64_t base,
                     const struct lemon_plan_hints *hints);

/* ---- what a mover does ---- */

struct lemon_piece {
    int64_t from, to;
};

/* The number of a rank as a mover, or -1. */
int64_t lemon_plan_mover(const struct lemon_plan *, int64_t rank);

/* The pieces of a mover's turn, in the order of the file, without empty ones; adjacent ones are
 * joined. How many. */
int lemon_plan_turn(const struct lemon_plan *, int64_t mover, int64_t turn,
                    struct lemon_piece pieces[LEMON_TURN_PIECES]);

/* ---- pieces: extents and pieces are numbered in the order of the file ---- */

/* Where an extent begins, and how many bytes it has. */
int64_t lemon_plan_extent(const struct lemon_plan *, int64_t extent, int64_t *bytes);

/* Where a piece begins: where the one before it ends. The number behind the last one's is that
 * of the end. */
int64_t lemon_plan_piece(const struct lemon_plan *, int64_t piece);

/* The rank that moves a piece, and its turn. */
int64_t lemon_plan_owner(const struct lemon_plan *, int64_t piece, int64_t *turn);

/* A row: the ranks that have the same parts of the dimensions up to `cut`. */
struct lemon_row {
    int64_t number;
    int64_t rank;                                         /* its first one */
    int64_t pieces;                                       /* of all its extents */
    int64_t start[LEMON_BOX_DIMS], sites[LEMON_BOX_DIMS]; /* in the dimensions up to `cut` */
};
void lemon_plan_row(const struct lemon_plan *, const int64_t *parts, struct lemon_row *);

#endif
