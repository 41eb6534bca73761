/* generator.h - make particles from a seed, in a domain whose origin is 0; calls no MPI */
#ifndef CHECKPOINT_GENERATOR_H
#define CHECKPOINT_GENERATOR_H

#include "molecule.h"

enum checkpoint_distribution {
    CHECKPOINT_UNIFORM, /* anywhere */
    CHECKPOINT_LATTICE, /* on a simple cubic lattice; its empty sites are evenly spread */
    CHECKPOINT_CLUSTER, /* 90 % in four droplets, of 8 : 4 : 2 : 1 particles; others anywhere */
};

extern const char *const checkpoint_distribution_names[]; /* ends with NULL */

struct checkpoint_generator {
    int64_t particles;
    uint64_t seed;
    enum checkpoint_distribution distribution;
    enum checkpoint_format format;
    double length[3];
    double temperature; /* for masses and moments of inertia of 1 */
    int64_t components;
    int64_t sites[3]; /* of the lattice; checkpoint_generate_particles() sets it */
};

/* Generates part `rank` of `ranks` nearly equal parts of the particles; the caller frees it.
 * All parts together are the same particles for any `ranks`. Particles 2i and 2i + 1, counted
 * from 0, have opposite velocities; a last particle without a partner has velocity 0. */
void checkpoint_generate_particles(struct checkpoint_generator *, int rank, int ranks,
                                   struct checkpoint_particles *);

#endif
