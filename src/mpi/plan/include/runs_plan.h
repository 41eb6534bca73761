/*
 * runs_plan.h - plan I/O of arbitrary ranges by aggregators; no MPI, the same result on every
 * rank
 *
 * Each rank has runs, which are ranges of the file in file order. A rank's stream is the
 * concatenation of the rank's runs. Each aggregator, a rank that does I/O, gets one contiguous
 * range of the file. The boundaries of these ranges are multiples of the stripe, and a range
 * has at least 4 MiB if possible, so a short file has few aggregators. Aggregators are spread
 * over all ranks. An aggregator moves its range in rounds. The bytes that a rank has in a round
 * are one range of that rank's stream.
 *
 * Offsets are relative to the first byte of all data, byte `base` of the file.
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
    int64_t rounds;      /* of each aggregator; some rounds may be empty */
};

/* bytes: of all ranks' data. */
void lemon_runs_plan_init(struct lemon_runs_plan *, int64_t bytes, int64_t ranks, int64_t base,
                          const struct lemon_plan_hints *hints);

/* Returns whether a rank may write its own runs: each of them has at least 4 MiB, the stripe of
 * the file is not known, and the hints do not exclude ranks from I/O. */
bool lemon_runs_can_write_directly(const struct lemon_runs_plan *, const struct lemon_run *,
                                   int64_t runs, const struct lemon_plan_hints *hints);

/* Divides numbered items among ranks, the homes of their items. Returns n: rank i is the home
 * of the n items from number i * n on. n is at least the square root of `items`, so with few
 * items only some ranks are homes, and a rank exchanges data with few homes. */
int64_t lemon_runs_items_per_home(int64_t items, int64_t ranks);

/* Return an aggregator's rank, and a rank's number as an aggregator (-1: not an aggregator). */
int64_t lemon_runs_aggregator_rank(const struct lemon_runs_plan *, int64_t aggregator);
int64_t lemon_runs_aggregator(const struct lemon_runs_plan *, int64_t rank);

/* Returns the number of the aggregator that moves byte `at` of the file. */
int64_t lemon_runs_find_aggregator(const struct lemon_runs_plan *, int64_t at);

/* Computes the range of an aggregator's round; *from == *to if the round is empty. */
void lemon_runs_round(const struct lemon_runs_plan *, int64_t aggregator, int64_t round,
                      int64_t *from, int64_t *to);

/* Sets `before` of each run; returns the length of the stream in bytes. */
int64_t lemon_runs_set_before(struct lemon_run *, int64_t runs);

/* Returns the number of the stream's bytes before byte `at` of the file. */
int64_t lemon_runs_bytes_before(const struct lemon_run *, int64_t runs, int64_t at);

/* Returns the first run that contains, or begins after, byte `at` of the file, or `runs`. */
int64_t lemon_runs_find(const struct lemon_run *, int64_t runs, int64_t at);

#endif
