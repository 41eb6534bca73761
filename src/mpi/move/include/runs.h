/*
 * runs.h - who moves bytes of which each rank has any ranges; pure, no MPI, the same on every
 * rank.
 *
 * What a rank has are runs of the file, in the order of the file, and its stream is these runs,
 * one after another. The bytes are divided between movers, one contiguous range for each,
 * at multiples of the stripe; a mover is given 4 MiB or more where there is that much, so where
 * ranks have little few of them move, and these are spread over all. A mover moves its range in
 * turns. Whatever falls into one turn of a mover is one range of each rank's stream.
 *
 * Offsets count from the first byte. Nothing here is kept for each rank.
 */
#ifndef LEMON_RUNS_H
#define LEMON_RUNS_H

#include "share.h"

/* Bytes [offset, offset + bytes). Runs are in order and do not overlap. */
struct lemon_run {
    int64_t offset, bytes;
    int64_t before; /* bytes of the runs before it: lemon_runs_count() */
};

struct lemon_runs_plan {
    struct lemon_share share; /* its movers are counted, not ranks */
    int64_t ranks;
    int64_t turn;  /* bytes of a turn, at most; a multiple of the stripe */
    int64_t turns; /* each mover's, some of which may be empty */
};

void lemon_runs_plan_make(struct lemon_runs_plan *, int64_t bytes, int64_t ranks, int64_t base,
                          const struct lemon_plan_hints *hints);

/* Whether a rank may write what it has itself, without movers: each run is as long as a mover's
 * range, no stripe is known that it would share with a neighbour, and all ranks may be movers.
 */
bool lemon_runs_are_long(const struct lemon_runs_plan *, const struct lemon_run *, int64_t runs,
                         const struct lemon_plan_hints *hints);

/* Of `items` that each rank has some of, how many have the same rank as their home: rank i
 * those from i times as many on. Where ranks have few, fewer of them are homes, so that neither
 * a home hears of too many ranks nor too many homes write to one place. */
int64_t lemon_runs_of_home(int64_t items, int64_t ranks);

/* The rank that is a mover, and the number of a rank as a mover, or -1. */
int64_t lemon_runs_rank(const struct lemon_runs_plan *, int64_t mover);
int64_t lemon_runs_mover(const struct lemon_runs_plan *, int64_t rank);

/* The mover that has a byte. */
int64_t lemon_runs_owner(const struct lemon_runs_plan *, int64_t at);

/* What a mover moves in a turn; empty: *from == *to. */
void lemon_runs_turn(const struct lemon_runs_plan *, int64_t mover, int64_t turn, int64_t *from,
                     int64_t *to);

/* Sets `before` of each run; returns the length of the stream. */
int64_t lemon_runs_count(struct lemon_run *, int64_t runs);

/* The bytes of the stream that lie before byte `at`. */
int64_t lemon_runs_before(const struct lemon_run *, int64_t runs, int64_t at);

/* The first run that ends behind byte `at`, or `runs`. */
int64_t lemon_runs_find(const struct lemon_run *, int64_t runs, int64_t at);

#endif
