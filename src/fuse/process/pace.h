/*
 * pace.h - how the thread that waits for the next request does it, while these are quick ones:
 * asleep, or on the watch, whichever was better last.
 *
 * Whoever sleeps must be woken, and so must his processor, which takes longer on a virtual
 * machine than the request itself. Whoever watches takes time of a processor that others may
 * want, and keeps the program that asks from it where there is no other. Which of the two is
 * faster is up to the machine, and to what else it does. So both are tried now and then.
 */
#ifndef LIMEFS_PACE_H
#define LIMEFS_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LIMEFS_PACE_TRIAL = 256, /* requests */
    LIMEFS_PACE_REST = 32,   /* trials' length, from one decision to the next trial */
};

/* Zeros are a new one. */
struct limefs_pace {
    _Atomic uint64_t last;        /* when a request came, in ns */
    _Atomic uint64_t spent;       /* ns between those of this trial */
    atomic_uint count;            /* of them */
    atomic_bool watching, paused; /* the last request was alone */
    /* Of whoever ends a trial: */
    unsigned ended; /* trials since the last one of sleep began */
    uint64_t other; /* ns that a trial took asleep, or on the watch: what it is not now */
};

/* Never after a request that came alone: the next one takes a while, too. */
bool limefs_pace_watches(const struct limefs_pace *);

/* A quick request has come, at that second. */
void limefs_pace_request(struct limefs_pace *, double now);

#endif
