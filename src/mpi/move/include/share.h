/*
 * share.h - divide bytes into one range per aggregator; no MPI, the same result on every rank
 */
#ifndef LEMON_SHARE_H
#define LEMON_SHARE_H

#include "plan.h"

struct lemon_share {
    int aggregators;    /* ranks 0 to aggregators - 1 */
    int64_t bytes;      /* in total */
    int64_t base;       /* their offset in the file */
    int64_t bytes_each; /* bytes of one aggregator, a multiple of stripe */
    int64_t stripe;
};

void lemon_share_make(struct lemon_share *, int64_t bytes, int ranks, int64_t base,
                      const struct lemon_plan_hints *hints);

/* Computes an aggregator's range, relative to the first byte; *from == *to if it is empty. */
void lemon_share_range(const struct lemon_share *, int aggregator, int64_t *from, int64_t *to);

#endif
