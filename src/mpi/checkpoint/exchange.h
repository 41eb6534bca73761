/* exchange.h - send particles, or other items of one size, between ranks */
#ifndef CHECKPOINT_EXCHANGE_H
#define CHECKPOINT_EXCHANGE_H

#include "molecule.h"
#include "world.h"

/* Sends item i of *p to rank to[i]. The received items replace *p, ordered by source rank;
 * items of a source keep their order. Aborts the job if a rank has 2^31 items or more.
 * Collective. */
void checkpoint_exchange(const struct checkpoint_world *, struct checkpoint_particles *p,
                         const int *to);

/* Sorts the particles of all ranks by id (the first 8 bytes, a uint64_t); sorts those with the
 * same id by their other bytes. Rank 0 gets the lowest ids, rank 1 the next higher ones, and so
 * on. Each rank gets about the same number. Collective. */
void checkpoint_sort_by_id(const struct checkpoint_world *, struct checkpoint_particles *);

#endif
