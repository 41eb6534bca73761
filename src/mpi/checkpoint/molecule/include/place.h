/*
 * place.h - particles that are made: where they are, and what else they have. Pure.
 */
#ifndef CHECKPOINT_PLACE_H
#define CHECKPOINT_PLACE_H

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
    double origin[3], length[3];
    double temperature; /* of masses of 1 */
    int64_t components;
    int64_t sites[3]; /* of the lattice: checkpoint_place_set() */
};

/* Sets what follows from the rest. */
void checkpoint_place_set(struct checkpoint_making *);

/* Of particle i, which is in the domain and not on an upper face. */
void checkpoint_place(const struct checkpoint_making *, int64_t i, double position[3]);

/* All of it: as many bytes as the format has. Particles 2 i and 2 i + 1 have opposite
 * velocities, and a last one without another has none: nothing moves as a whole. */
void checkpoint_make(const struct checkpoint_making *, int64_t i, const double position[3],
                     void *particle);

#endif
