/*
 * file_domains.h - divide a range of the file into one range per aggregator, aligned to
 * stripes; no MPI, the same result on every rank
 */
#ifndef LEMON_FILE_DOMAINS_H
#define LEMON_FILE_DOMAINS_H

#include "lattice_plan.h"

struct lemon_file_domains {
    int aggregators;     /* number of aggregators */
    int64_t bytes;       /* of the whole range */
    int64_t file_offset; /* of the range's first byte; need not be aligned */
    int64_t bytes_each;  /* of an aggregator, a multiple of stripe; less at the range's ends */
    int64_t stripe;
};

/* hints->stripe must be positive. There is one aggregator per stripe, but not more than ranks,
 * and not more than hints->aggregators unless that is 0. */
void lemon_file_domains_init(struct lemon_file_domains *, int64_t bytes, int ranks,
                             int64_t file_offset, const struct lemon_plan_hints *hints);

/* Computes an aggregator's range [*from, *to), possibly empty, relative to file_offset. */
void lemon_file_domains_range(const struct lemon_file_domains *, int aggregator, int64_t *from,
                              int64_t *to);

#endif
