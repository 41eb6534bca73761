/*
 * match.h - two sets of particles, compared byte for byte. Pure.
 */
#ifndef CHECKPOINT_MATCH_H
#define CHECKPOINT_MATCH_H

#include "molecule.h"

enum {
    CHECKPOINT_MATCH_IDS = 10, /* of each side are kept: the least */
};

struct checkpoint_match {
    int64_t only[2]; /* particles in one set and not in the other */
    int ids[2];      /* of `id` */
    uint64_t id[2][CHECKPOINT_MATCH_IDS];
};

/* Sorts both. id: where the particles' ids are, or NULL. Equal particles count as often as they
 * are there. */
void checkpoint_match(struct checkpoint_particles sets[2], const LemonField *id,
                      struct checkpoint_match *);

/* Keeps the least, sorted. */
void checkpoint_match_add(struct checkpoint_match *, int side, uint64_t id);

#endif
