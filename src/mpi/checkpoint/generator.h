/* generator.h - make particles from a seed, in a domain whose origin is 0; calls no MPI */
#ifndef CHECKPOINT_GENERATOR_H
#define CHECKPOINT_GENERATOR_H

#include "molecule.h"

enum checkpoint_distribution {
    CHECKPOINT_UNIFORM, /* anywhere */
    CHECKPOINT_LATTICE, /* simple cubic; if the number is not a cube, with evenly spread gaps */
    CHECKPOINT_CLUSTER, /* 90 % in four droplets, each with half as many as the one before */
};

extern const char *const checkpoint_distribution_names[]; /* ends with NULL */

struct checkpoint_generator {
    int64_t particles;
    uint64_t seed;
    enum checkpoint_distribution distribution;
    enum checkpoint_format format;
    double length[3];
    double temperature; /* for masses of 1 */
    int64_t components;
    int64_t sites[3]; /* of the lattice; checkpoint_generate_particles() sets it */
};

/* Generates this rank's part of all particles; which part depends only on rank and ranks. The
 * caller frees them. Particles 2i and 2i + 1, counted from 0, have opposite velocities, and an
 * unpaired last one has none, so the total momentum is 0. */
void checkpoint_generate_particles(struct checkpoint_generator *, int rank, int ranks,
                                   struct checkpoint_particles *);

#endif
