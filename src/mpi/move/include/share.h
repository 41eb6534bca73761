/*
 * share.h - bytes without a shape, shared between ranks: one contiguous range for each; pure,
 * no MPI, the same on every rank.
 */
#ifndef LEMON_SHARE_H
#define LEMON_SHARE_H

#include "plan.h"

struct lemon_share {
    int movers;    /* ranks 0 .. movers - 1 */
    int64_t bytes; /* of all */
    int64_t base;  /* where they start in the file */
    int64_t each;  /* of a mover, a multiple of stripe */
    int64_t stripe;
};

void lemon_share_make(struct lemon_share *, int64_t bytes, int ranks, int64_t base,
                      const struct lemon_plan_hints *hints);

/* The range of a mover, from the first of the bytes on; an empty one has *from == *to. */
void lemon_share_range(const struct lemon_share *, int mover, int64_t *from, int64_t *to);

#endif
