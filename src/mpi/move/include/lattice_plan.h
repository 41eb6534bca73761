/*
 * lattice_plan.h - plan which rank moves which range of the file; no MPI, the same result on
 * every rank
 *
 * A rank's part of the lattice consists of runs, ranges that are contiguous in the file
 * (box.h). If runs are long (and, if the file's stripe is known, at least several stripes or
 * whole stripes), each rank reads or writes its own runs ("direct"). Otherwise some ranks, the
 * aggregators, read or write long ranges ("pieces"), and all ranks exchange data with them. No
 * plan requires read-modify-write.
 *
 * Pieces follow the grid. A row is a set of ranks that differ only in the fastest dimensions
 * of the grid. A row holds extents, contiguous ranges of the file, one for each coordinate
 * that it has in the slower dimensions. The plan selects the shortest extents of at least 4
 * MiB: few ranks then exchange data with each other, and the number of rows grows with the
 * number of ranks. An extent is one piece, or several if it is long or if more ranks should
 * move data. The pieces of a row are assigned in file order to aggregators of that row.
 * Boundaries between pieces are shifted to the nearest multiple of the stripe, so a piece
 * may contain a little of the neighbouring row.
 *
 * An aggregator moves its pieces in rounds, so it needs memory for two rounds only. It
 * exchanges the data of one round while the file system processes the other.
 *
 * MPI-IO gets contiguous ranges only. If ranks interleave, the default component of Open MPI
 * 4.1 (OMPIO) silently corrupts the file, and ROMIO's collective buffering does not scale
 * (MPICH issue 7935, the origin of the idea of rows).
 *
 * Offsets are relative to the first byte of the lattice. Memory does not grow with the ranks.
 */
#ifndef LEMON_PLAN_H
#define LEMON_PLAN_H

#include "grid.h"

/* What the user requests. */
struct lemon_plan_hints {
    int64_t stripe;      /* bytes, 1 to 1 GiB */
    bool striped;        /* the stripe is the file's, not a default */
    int64_t aggregators; /* limit of aggregators; 0: none */
    int64_t round_bytes; /* limit of bytes in a round, at least one stripe; 0: none */
};

enum {
    LEMON_ROUND_PIECES_MAX = 64, /* limit */
};

struct lemon_plan {
    struct lemon_grid grid;
    bool direct;
    int64_t ranks;
    int64_t bytes; /* of the lattice */
    int64_t base;  /* offset of the lattice in the file */
    int64_t stripe;
    int cut; /* dimension; an extent is one part of it, with all of the faster dimensions */
    int64_t inner;           /* bytes of one step in dimension `cut` */
    int64_t extents;         /* in the lattice */
    int64_t pieces;          /* in an extent */
    int64_t rows, width;     /* width: number of ranks in a row */
    int64_t row_aggregators; /* in a row, at most width */
    int64_t aggregators;     /* in all; at most rows * row_aggregators */
    int64_t round_pieces;    /* limit of an aggregator's pieces in a round */
    int64_t rounds;          /* of each aggregator; some may be empty */
};

/* base: the offset of the lattice in the file. */
void lemon_plan_init(struct lemon_plan *, const struct lemon_grid *, int64_t base,
                     const struct lemon_plan_hints *hints);

/* ---- aggregators ---- */

struct lemon_piece {
    int64_t from, to;
};

/* Returns the number of a rank as an aggregator, or -1 if it is not one. */
int64_t lemon_plan_aggregator(const struct lemon_plan *, int64_t rank);

/* Sets the pieces of an aggregator's round and returns their number. They are in file order;
 * none is empty, and adjacent ones are merged. */
int lemon_plan_round(const struct lemon_plan *, int64_t aggregator, int64_t round,
                     struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX]);

/* ---- pieces: numbered, like extents, in file order ---- */

/* Returns the offset of an extent, and sets its length in bytes. */
int64_t lemon_plan_extent_offset(const struct lemon_plan *, int64_t extent, int64_t *bytes);

/* Returns the offset of a piece, which is the end of the previous one; for the number after the
 * last piece, the end of the lattice. */
int64_t lemon_plan_piece_offset(const struct lemon_plan *, int64_t piece);

/* Returns the rank that moves a piece, and sets its round. */
int64_t lemon_plan_piece_owner(const struct lemon_plan *, int64_t piece, int64_t *round);

/* A row: the ranks that have the same parts in the dimensions up to `cut`. */
struct lemon_row {
    int64_t number;
    int64_t rank;                                         /* its first rank */
    int64_t pieces;                                       /* in all its extents */
    int64_t start[LEMON_BOX_DIMS], sites[LEMON_BOX_DIMS]; /* in dimensions up to `cut` */
};

/* Gets the row of the ranks with these parts in the dimensions up to `cut`. */
void lemon_plan_get_row(const struct lemon_plan *, const int64_t *parts, struct lemon_row *);

#endif
