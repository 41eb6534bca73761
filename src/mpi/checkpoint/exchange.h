/*
 * exchange.h - particles, or other items of one size, that go from ranks to ranks
 */
#ifndef CHECKPOINT_EXCHANGE_H
#define CHECKPOINT_EXCHANGE_H

#include "molecule.h"
#include "world.h"

/* Collective: item i goes to rank to[i]. What comes replaces *p: that of rank 0 first, and of
 * each rank as it was ordered there. A rank may have 2^31 items. */
void checkpoint_exchange(const struct checkpoint_world *, struct checkpoint_particles *p,
                         const int *to);

/* Collective. Afterwards rank 0 has the particles with the least ids, rank 1 the next ones, and
 * so on, each sorted, and about as many each. The id is the first 8 bytes; particles with the
 * same one are ordered by their other bytes. */
void checkpoint_order(const struct checkpoint_world *, struct checkpoint_particles *);

#endif
