/*
 * order.h - all ranks' particles, ordered by their ids
 */
#ifndef CHECKPOINT_ORDER_H
#define CHECKPOINT_ORDER_H

#include "molecule.h"
#include "world.h"

/* Collective: afterwards rank 0 has those of the least ids, and so on; those with the same id
 * are ordered by their bytes. The id is the first 8 bytes of a particle. False, on all ranks:
 * there was no memory; the particles are still there, somewhere. */
bool checkpoint_order(const struct checkpoint_world *, struct checkpoint_particles *);

#endif
