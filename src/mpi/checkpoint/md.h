/*
 * md.h - a small molecular-dynamics run: Lennard-Jones particles in a periodic cube
 *
 * Units are reduced: epsilon, sigma and the mass are 1. A particle has x at a step and v half a
 * step before it (leapfrog). The trajectory is bit-identical on any number of ranks and after
 * any restart: a particle's cell depends only on its position; the forces on a particle are
 * added cell by cell in a fixed order, and in a cell by id; sums over particles are exact.
 *
 * The cube is cut into n * n * n cells with edges of at least the cut-off, numbered with z
 * fastest. Each rank owns a range of these numbers.
 */
#ifndef CHECKPOINT_MD_H
#define CHECKPOINT_MD_H

#include "molecule.h"
#include "world.h"

struct md_parameters {
    int64_t particles;
    double length;  /* edge of the cube, which begins at 0 */
    double cut_off; /* of the potential, which is shifted to be 0 there */
    double dt;
    double temperature; /* of the velocities at step 0 */
    int64_t seed;       /* seed of these velocities */
};

/* The particle of a checkpoint: the first bytes of struct checkpoint_molecule. */
struct md_particle {
    uint64_t id;
    uint32_t component, gap; /* 1, 0 */
    double x[3];
    double v[3]; /* half a step before x */
};

struct md_energy {
    double potential, kinetic; /* of all particles, at the same time */
};

struct md_state {
    const struct checkpoint_world *world;
    struct md_parameters parameters;
    int64_t step;
    int64_t n, cells;                /* n in each dimension, cells in all */
    struct checkpoint_particles own; /* struct md_particle, ordered by cell, then id */
    int64_t *first;                  /* index in `own` per cell; one more at the end */
};

/* Initializes a state without particles. False: rank 0 has printed why. Collective. */
bool md_state_init(struct md_state *, const struct checkpoint_world *,
                   const struct md_parameters *);
void md_state_free(struct md_state *);

/* Gives each rank the particles of its cells; before, `own` has any part of all, in any order.
 * Returns false if their total number is wrong or one is outside of the cube. Collective. */
bool md_state_distribute(struct md_state *);

/* Computes the energies at `step`, which needs the forces; with `move` advances to the next
 * step. Returns false, after a message of rank 0, if a particle moves too far or an energy is
 * NaN. Collective. */
bool md_step(struct md_state *, bool move, struct md_energy *);

#endif
