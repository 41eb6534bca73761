/* exchange.h - send particles, or other items of one size, between ranks */
#ifndef CHECKPOINT_EXCHANGE_H
#define CHECKPOINT_EXCHANGE_H

#include "molecule.h"
#include "world.h"

/* Collective: sends item i to rank to[i]. The received items replace *p, ordered by source rank
 * and, for each source, by their order there. A rank may send and receive fewer than 2^31
 * items.
 */
void checkpoint_exchange(const struct checkpoint_world *, struct checkpoint_particles *p,
                         const int *to);

/* Collective: sorts all particles by id, their first 8 bytes, and then by the other bytes. Rank
 * 0 then has the least ids, rank 1 the next ones, and so on, about the same number each. */
void checkpoint_sort_by_id(const struct checkpoint_world *, struct checkpoint_particles *);

#endif
