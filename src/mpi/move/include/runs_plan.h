/*
 * runs_plan.h - plan I/O of arbitrary ranges by aggregators; no MPI, the same result on every
 * rank
 *
 * Each rank has runs, ranges of the file, in file order; its stream is the concatenation of
 * its runs. Aggregators, the ranks that do I/O, get one contiguous range of the file each,
 * divided at multiples of the stripe and at least 4 MiB long if possible. A short file
 * therefore has few aggregators; they are spread over all ranks. An aggregator moves its
 * range in rounds. The bytes of a round are one range of each rank's stream.
 *
 * Offsets are relative to the first byte of all data, byte `base` of the file. Memory does not
 * grow with the number of ranks.
 */
#ifndef LEMON_RUNS_H
#define LEMON_RUNS_H

#include "file_domains.h"

/* Bytes [offset, offset + bytes). Runs are sorted and do not overlap. */
struct lemon_run {
    int64_t offset, bytes;
    int64_t before; /* total bytes of earlier runs, set by lemon_runs_set_before() */
};

struct lemon_runs_plan {
    struct lemon_file_domains domains; /* numbered by aggregator, not by rank */
    int64_t ranks;
    int64_t round_bytes; /* limit of a round in bytes, a multiple of the stripe */
    int64_t rounds;      /* of each aggregator; some may be empty */
};

/* bytes: of all ranks' data. */
void lemon_runs_plan_init(struct lemon_runs_plan *, int64_t bytes, int64_t ranks, int64_t base,
                          const struct lemon_plan_hints *hints);

/* Returns whether a rank may write its own runs: each of them has at least 4 MiB, the stripe of
 * the file is not known, and the hints do not exclude ranks from I/O. */
bool lemon_runs_are_long(const struct lemon_runs_plan *, const struct lemon_run *, int64_t runs,
                         const struct lemon_plan_hints *hints);

/* Divides `items` numbered items among ranks, their homes: returns n such that rank i is the
 * home of the n items from number i * n on. With few items, not all ranks are homes, so that
 * neither a home exchanges data with too many ranks, nor one rank with too many homes. */
int64_t lemon_runs_items_per_home(int64_t items, int64_t ranks);

/* Return the rank of an aggregator, and the number of a rank as an aggregator, or -1. */
int64_t lemon_runs_aggregator_rank(const struct lemon_runs_plan *, int64_t aggregator);
int64_t lemon_runs_aggregator(const struct lemon_runs_plan *, int64_t rank);

/* Returns the number of the aggregator that moves byte `at`. */
int64_t lemon_runs_find_aggregator(const struct lemon_runs_plan *, int64_t at);

/* Computes the range of an aggregator's round; *from == *to if it is empty. */
void lemon_runs_round(const struct lemon_runs_plan *, int64_t aggregator, int64_t round,
                      int64_t *from, int64_t *to);

/* Sets `before` of each run; returns the length of the stream in bytes. */
int64_t lemon_runs_set_before(struct lemon_run *, int64_t runs);

/* Returns the number of the stream's bytes before byte `at`. */
int64_t lemon_runs_bytes_before(const struct lemon_run *, int64_t runs, int64_t at);

/* Returns the first run that ends after byte `at`, or `runs`. */
int64_t lemon_runs_find(const struct lemon_run *, int64_t runs, int64_t at);

#endif
