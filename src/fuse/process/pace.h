/*
 * pace.h - how many threads wait for the next request, while these are quick ones: few or many,
 * whichever was faster last.
 *
 * With one, no other thread is woken for the next request. But it waits on another processor
 * than the program that asks, and each must wake the other's; of several, some have last run on
 * that program's. Which of the two costs more is up to the machine, and to what it costs there
 * to wake a processor. So both are tried now and then.
 */
#ifndef LIMEFS_PACE_H
#define LIMEFS_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    LIMEFS_PACE_FEW = 1,
    LIMEFS_PACE_MANY = 4,
    LIMEFS_PACE_TRIAL = 256, /* requests */
    LIMEFS_PACE_REST = 32,   /* trials' length, from one decision to the next trial */
};

/* Zeros are a new one. */
struct limefs_pace {
    _Atomic uint64_t last;  /* when a request came, in ns */
    _Atomic uint64_t spent; /* ns between those of this trial */
    atomic_uint count;      /* of them */
    atomic_bool many;
    /* Of whoever ends a trial: */
    unsigned ended; /* trials since few began */
    uint64_t other; /* ns that a trial with few took, or with many: what it is not now */
};

unsigned limefs_pace_threads(const struct limefs_pace *);

/* A quick request has come, at that second. How many threads more than before are to wait. */
unsigned limefs_pace_request(struct limefs_pace *, double now);

#endif
