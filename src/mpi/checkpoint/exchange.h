/* exchange.h - send particles, or other items of one size, between ranks */
#ifndef CHECKPOINT_EXCHANGE_H
#define CHECKPOINT_EXCHANGE_H

#include "molecule.h"
#include "world.h"

/* Collective: sends item i to rank to[i]. The received items replace *p, ordered by source rank
 * and then as the source had them. A rank can send or receive fewer than 2^31 items. */
void checkpoint_exchange(const struct checkpoint_world *, struct checkpoint_particles *p,
                         const int *to);

/* Collective: sorts the particles of all ranks by id (their first 8 bytes, a uint64_t), then by
 * their other bytes. Rank 0 gets the least ids, rank 1 the next ones, and so on, about the same
 * number each. */
void checkpoint_sort_by_id(const struct checkpoint_world *, struct checkpoint_particles *);

#endif
