/*
 * file_domains.h - divide bytes into one range per aggregator; no MPI, the same result on every
 * rank
 */
#ifndef LEMON_FILE_DOMAINS_H
#define LEMON_FILE_DOMAINS_H

#include "lattice_plan.h"

struct lemon_file_domains {
    int aggregators;    /* ranks 0 to aggregators - 1 */
    int64_t bytes;      /* in total */
    int64_t base;       /* their offset in the file */
    int64_t bytes_each; /* bytes of one aggregator, a multiple of stripe */
    int64_t stripe;
};

void lemon_file_domains_init(struct lemon_file_domains *, int64_t bytes, int ranks,
                             int64_t base, const struct lemon_plan_hints *hints);

/* Computes an aggregator's range, relative to the first byte; *from == *to if it is empty. */
void lemon_file_domains_range(const struct lemon_file_domains *, int aggregator, int64_t *from,
                              int64_t *to);

#endif
