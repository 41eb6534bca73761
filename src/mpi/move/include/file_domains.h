/*
 * file_domains.h - divide a range of the file into one range per aggregator, aligned to
 * stripes; no MPI, the same result on every rank
 */
#ifndef LEMON_FILE_DOMAINS_H
#define LEMON_FILE_DOMAINS_H

#include "lattice_plan.h"

struct lemon_file_domains {
    int aggregators;     /* ranks 0 to aggregators - 1 */
    int64_t bytes;       /* of the whole range */
    int64_t file_offset; /* of the range's first byte; need not be aligned */
    int64_t bytes_each;  /* bytes of one aggregator, a multiple of stripe */
    int64_t stripe;
};

/* hints->stripe must be positive. hints->aggregators 0: a rank per stripe, if there are
 * enough. */
void lemon_file_domains_init(struct lemon_file_domains *, int64_t bytes, int ranks,
                             int64_t file_offset, const struct lemon_plan_hints *hints);

/* Computes an aggregator's range [*from, *to), relative to file_offset; it may be empty. */
void lemon_file_domains_range(const struct lemon_file_domains *, int aggregator, int64_t *from,
                              int64_t *to);

#endif
