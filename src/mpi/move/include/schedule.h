/*
 * schedule.h - what one rank does by a plan, turn by turn; pure, no MPI.
 *
 * As one who holds a part of the lattice it sends parts to movers, or gets them. As a mover it
 * gets them from those who hold them, or sends them there. In each turn there is at most one
 * message between two ranks.
 */
#ifndef LEMON_SCHEDULE_H
#define LEMON_SCHEDULE_H

#include "plan.h"

/* A range of the rank's part that a mover has in one of its turns. */
struct lemon_part {
    int64_t turn;
    int64_t mover; /* the rank that is it, perhaps the same one */
    int64_t at, n; /* bytes of the rank's part, n > 0 */
};

/* What a rank has of the mover's turn. */
struct lemon_source {
    int64_t turn;
    int64_t rank; /* perhaps the mover itself */
    int64_t n;    /* bytes, n > 0 */
};

struct lemon_schedule {
    struct lemon_part *parts;       /* together the rank's part; by turn, mover, and place */
    int64_t part_count, most_parts; /* most: in a turn */
    int64_t mover;                  /* the rank's number as a mover, or -1 */
    struct lemon_source *sources;   /* by turn, and rank */
    int64_t source_count, most_sources;
    int64_t bytes, window; /* that the mover moves: in all turns, and at most in one */
};

/* -1: no memory; nothing is to be freed then. */
int lemon_schedule_make(struct lemon_schedule *, const struct lemon_plan *, int64_t rank);
void lemon_schedule_free(struct lemon_schedule *);

#endif
