/*
 * schedule.h - list what one rank exchanges in each turn of a plan; no MPI
 *
 * A rank sends parts of its data to aggregators, or receives them. An aggregator receives them
 * from the ranks that hold them, or sends them there. Each turn has at most one message between
 * two ranks.
 */
#ifndef LEMON_SCHEDULE_H
#define LEMON_SCHEDULE_H

#include "plan.h"

/* A range of the rank's data that an aggregator moves in one of its turns. */
struct lemon_part {
    int64_t turn;
    int64_t mover; /* rank of the aggregator, possibly this rank */
    int64_t at, n; /* range of the rank's data, n > 0 */
};

/* What a rank holds of a turn of this rank as an aggregator. */
struct lemon_source {
    int64_t turn;
    int64_t rank; /* possibly the aggregator itself */
    int64_t n;    /* bytes, n > 0 */
};

struct lemon_schedule {
    struct lemon_part *parts;       /* the rank's data, by turn, mover and offset */
    int64_t part_count, most_parts; /* most: in one turn */
    int64_t mover;                  /* the rank's number as an aggregator, or -1 */
    struct lemon_source *sources;   /* sorted by turn and rank */
    int64_t source_count, most_sources;
    int64_t bytes, window; /* bytes that this aggregator moves: in all turns; the most in one */
};

/* Lists what `rank` exchanges. Returns 0, or -1 if out of memory (nothing to free). */
int lemon_schedule_make(struct lemon_schedule *, const struct lemon_plan *, int64_t rank);
void lemon_schedule_free(struct lemon_schedule *);

#endif
