/*
 * plan.h - who moves which range of the file; pure, no MPI, the same on every rank.
 *
 * Either every rank moves its own runs (direct), where these are long; or the lattice is cut
 * into one contiguous, stripe-aligned range for each of some ranks, the movers, and the ranks
 * exchange data with them. Nothing is ever read in order to write.
 *
 * The reason: MPI-IO is only ever asked for contiguous ranges. Left to interleave ranks by
 * itself, Open MPI 4.1's default component (OMPIO) silently corrupts the file.
 */
#ifndef LEMON_PLAN_H
#define LEMON_PLAN_H

#include "box.h"

#include <stdbool.h>

struct lemon_plan {
    bool direct;
    int ranks;
    int movers;    /* ranks 0 .. movers - 1, if not direct */
    int64_t bytes; /* of the lattice */
    int64_t base;  /* where it starts in the file */
    int64_t share; /* of a mover, a multiple of stripe */
    int64_t stripe;
    int64_t round; /* of its range that a mover moves at once, a multiple of stripe */
};

/* What the user wishes. */
struct lemon_plan_hints {
    int64_t stripe; /* 1 .. 1 GiB */
    int64_t movers; /* at most so many; 0: no wish */
    int64_t round;  /* at most so many bytes, but at least a stripe; 0: no wish */
};

/* boxes: one for each rank. */
void lemon_plan_make(struct lemon_plan *, const struct lemon_box *boxes, int ranks,
                     int64_t base, const struct lemon_plan_hints *hints);

/* The same for `bytes` at `base` that have no shape: the movers share them. */
void lemon_plan_share(struct lemon_plan *, int64_t bytes, int ranks, int64_t base,
                      const struct lemon_plan_hints *hints);

/* The range of a mover, and its part in a round; empty ranges have *from == *to. Offsets count
 * from the start of the lattice. */
void lemon_plan_range(const struct lemon_plan *, int mover, int64_t *from, int64_t *to);
void lemon_plan_window(const struct lemon_plan *, int mover, int64_t round, int64_t *from,
                       int64_t *to);

/* How many rounds there are, for all movers. */
int64_t lemon_plan_rounds(const struct lemon_plan *);

#endif
