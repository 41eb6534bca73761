/*
 * made.h - particles that are made by a seed, in a domain that begins at 0. Pure.
 */
#ifndef CHECKPOINT_MADE_H
#define CHECKPOINT_MADE_H

#include "molecule.h"

enum checkpoint_distribution {
    CHECKPOINT_UNIFORM, /* anywhere */
    CHECKPOINT_LATTICE, /* simple cubic, with evenly spread gaps where the number is no cube */
    CHECKPOINT_CLUSTER, /* nine of ten in four droplets, each half as large as the one before */
};

extern const char *const checkpoint_distribution_names[]; /* then NULL */

struct checkpoint_making {
    int64_t particles;
    uint64_t seed;
    enum checkpoint_distribution distribution;
    enum checkpoint_format format;
    double length[3];
    double temperature; /* of masses of 1 */
    int64_t components;
    int64_t sites[3]; /* of the lattice: set by checkpoint_make() */
};

/* The particles of a rank: of all, a part that follows from rank and ranks. Particles 2 i and
 * 2 i + 1 have opposite velocities, and a last one without another has none: nothing moves as a
 * whole. */
void checkpoint_make(struct checkpoint_making *, int rank, int ranks,
                     struct checkpoint_particles *);

#endif
