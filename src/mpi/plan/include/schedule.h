/*
 * schedule.h - list what one rank exchanges in each round of a plan; no MPI
 *
 * In a write, a rank sends parts of its data to aggregators; in a read, it receives parts from
 * them. In each round there is at most one message between a rank and an aggregator.
 */
#ifndef LEMON_SCHEDULE_H
#define LEMON_SCHEDULE_H

#include "lattice_plan.h"

/* A range of the rank's data that an aggregator reads or writes in one of its rounds. */
struct lemon_part {
    int64_t round;
    int64_t aggregator; /* rank of the aggregator, possibly this rank */
    int64_t at, n;      /* range of the rank's data, n > 0 */
};

/* If this rank is an aggregator: how many bytes of one of its rounds belong to `rank`. */
struct lemon_source {
    int64_t round;
    int64_t rank; /* possibly the aggregator itself */
    int64_t n;    /* bytes, n > 0 */
};

struct lemon_schedule {
    struct lemon_part *parts;      /* sorted by round, aggregator and offset */
    int64_t part_count, max_parts; /* max_parts: largest number of parts in one round */
    int64_t aggregator;            /* the rank's number as an aggregator, or -1 */
    struct lemon_source *sources;  /* sorted by round and rank */
    int64_t source_count, max_sources;
    int64_t bytes, window; /* of an aggregator: bytes of all rounds, and of the longest */
};

/* Lists what `rank` exchanges. Returns 0, or -1 if out of memory (release is not needed). */
int lemon_schedule_init(struct lemon_schedule *, const struct lemon_plan *, int64_t rank);
void lemon_schedule_release(struct lemon_schedule *);

#endif
