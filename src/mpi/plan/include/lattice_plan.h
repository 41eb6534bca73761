/*
 * lattice_plan.h - plan which rank moves which range of the file; no MPI, the same result on
 * every rank
 *
 * A rank's part of the lattice consists of runs, ranges that are contiguous in the file
 * (box.h). In a direct plan each rank reads or writes its own runs: each part is one run, or
 * all runs are long (and, if the stripe is known, have several stripes or are aligned to it).
 * In other plans some ranks, the aggregators, read or write long ranges ("pieces"), and all
 * ranks exchange data with the aggregators. No plan requires read-modify-write.
 *
 * A row is the set of ranks that have the same parts in a dimension, the cut, and in all slower
 * ones. A row's ranks together hold extents, contiguous ranges of the file: one for each
 * combination of the row's coordinates in the dimensions slower than the cut. The plan selects
 * the cut with the shortest extents of at least 4 MiB. Rows are then short, so a rank exchanges
 * data with few others. An extent is one piece, or several if it is long or if more ranks
 * should move data. The pieces of a row are assigned in file order to aggregators of that row.
 * Boundaries between pieces are shifted to the nearest multiple of the stripe, so a piece may
 * contain a little of a neighbouring row's extent.
 *
 * An aggregator moves its pieces in rounds, so it needs memory for two rounds only. It
 * exchanges the data of one round while the file system reads or writes those of the other.
 *
 * Lemon passes only contiguous ranges to MPI-IO. With ranges of several ranks that interleave,
 * OMPIO (the default of Open MPI 4.1) silently corrupts the file, and ROMIO's collective
 * buffering does not scale (MPICH issue 7935, the origin of the idea of rows).
 *
 * Offsets are relative to the first byte of the lattice.
 */
#ifndef LEMON_PLAN_H
#define LEMON_PLAN_H

#include "grid.h"

/* What the user requests, or the defaults. */
struct lemon_plan_hints {
    int64_t stripe;      /* bytes, 1 to 1 GiB */
    bool striped;        /* the stripe is that of the file or of the user, not the default */
    int64_t aggregators; /* limit of aggregators; 0: no limit */
    int64_t round_bytes; /* limit of bytes in a round, raised to one stripe; 0: no limit */
};

enum {
    LEMON_ROUND_PIECES_MAX = 64, /* limit of pieces in a round */
};

struct lemon_plan {
    struct lemon_grid grid;
    bool direct;
    int64_t ranks;
    int64_t bytes; /* of the lattice */
    int64_t base;  /* offset of the lattice in the file */
    int64_t stripe;
    int cut; /* a dimension: an extent is one part of it, with all of the faster dimensions */
    int64_t inner;           /* bytes from one coordinate to the next in dimension `cut` */
    int64_t extents;         /* in the lattice */
    int64_t pieces;          /* in an extent */
    int64_t rows, width;     /* width: number of ranks in a row */
    int64_t row_aggregators; /* in a row, at most width */
    int64_t aggregators;     /* in all; at most rows * row_aggregators */
    int64_t round_pieces;    /* limit of an aggregator's pieces in a round */
    int64_t rounds;          /* of each aggregator; some rounds may be empty */
};

/* base: the offset of the lattice in the file. */
void lemon_plan_init(struct lemon_plan *, const struct lemon_grid *, int64_t base,
                     const struct lemon_plan_hints *hints);

/* ---- aggregators ---- */

struct lemon_piece {
    int64_t from, to;
};

/* Returns a rank's number as an aggregator, or -1 if the rank is not an aggregator. */
int64_t lemon_plan_aggregator(const struct lemon_plan *, int64_t rank);

/* Sets `pieces` to those of an aggregator's round and returns their number. The pieces are in
 * file order and not empty; adjacent pieces are merged. */
int lemon_plan_round(const struct lemon_plan *, int64_t aggregator, int64_t round,
                     struct lemon_piece pieces[LEMON_ROUND_PIECES_MAX]);

/* ---- pieces: numbered, like extents, in file order ---- */

/* Returns the offset of an extent, and sets *bytes to the extent's length. */
int64_t lemon_plan_extent_offset(const struct lemon_plan *, int64_t extent, int64_t *bytes);

/* Returns the offset at which a piece begins and the previous piece ends. For the number after
 * the last piece's, returns the end of the lattice. */
int64_t lemon_plan_piece_offset(const struct lemon_plan *, int64_t piece);

/* Returns the rank that moves a piece, and sets *round to the round in which the rank does. */
int64_t lemon_plan_piece_owner(const struct lemon_plan *, int64_t piece, int64_t *round);

/* A row: the ranks that have the same parts in dimension `cut` and in all slower ones. */
struct lemon_row {
    int64_t number;
    int64_t rank;                                         /* the row's lowest rank */
    int64_t pieces;                                       /* in all extents of the row */
    int64_t start[LEMON_BOX_DIMS], sites[LEMON_BOX_DIMS]; /* of these parts, as in lemon_box */
};

/* parts: in dimensions 0 to `cut`, the number of the part that all ranks of the row have. */
void lemon_plan_get_row(const struct lemon_plan *, const int64_t *parts, struct lemon_row *);

#endif
