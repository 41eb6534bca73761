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
    int64_t n, cells;                /* cells in each dimension, and in total */
    struct checkpoint_particles own; /* struct md_particle, ordered by cell, then id */
    int64_t *first;                  /* index in `own` of each cell's first; then the end */
};

/* Initializes a state without particles. Returns false after a message of rank 0 if the cube is
 * too small. *world must stay valid. Collective. */
bool md_state_init(struct md_state *, const struct checkpoint_world *,
                   const struct md_parameters *);
void md_state_free(struct md_state *);

/* Sends each particle, which any rank may have before, to the rank that owns its cell. Returns
 * false if the total is wrong or a particle is outside of the cube. Collective. */
bool md_state_distribute(struct md_state *);

/* Computes the forces and the energies at `step`; with `move` advances to the next step.
 * Returns false, after a message of rank 0, if a particle moves by a cell or more or an energy
 * is NaN. Collective. */
bool md_step(struct md_state *, bool move, struct md_energy *);

#endif
