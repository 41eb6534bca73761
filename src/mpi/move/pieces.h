/*
 * pieces.h - where the pieces of a plan are, and who moves which of them; for this folder
 *
 * Extents and pieces are numbered in the order of the file.
 */
#ifndef LEMON_PIECES_H
#define LEMON_PIECES_H

#include "plan.h"

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
