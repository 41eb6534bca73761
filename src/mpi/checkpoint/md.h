/*
 * md.h - a small molecular-dynamics run: Lennard-Jones particles in a periodic cube
 *
 * Units are reduced: epsilon, sigma and the mass are 1. The state at a step has the positions x
 * at this step and the velocities v half a step earlier (leapfrog). The trajectory has the same
 * bits on any number of ranks and after any restart: a particle's cell depends only on its
 * position; the forces on a particle are added cell by cell in a fixed order, and within a cell
 * by id; the energies of cells are added exactly.
 *
 * The cube is cut into n * n * n cells, whose edges are at least the cut-off. Cell (x, y, z)
 * has the number (x * n + y) * n + z. Each rank owns the cells of a range of numbers.
 */
#ifndef CHECKPOINT_MD_H
#define CHECKPOINT_MD_H

#include "molecule.h"
#include "world.h"

struct md_parameters {
    int64_t particles;
    double length;  /* edge of the cube: coordinates are in [0, length) */
    double cut_off; /* of the potential, which is shifted to be 0 there */
    double dt;
    double temperature; /* of the velocities at step 0 */
    int64_t seed;       /* seed of these velocities */
};

/* A particle in memory and in checkpoints: the first bytes of struct checkpoint_molecule. */
struct md_particle {
    uint64_t id;
    uint32_t component, gap; /* component is 1, gap is 0 */
    double x[3];
    double v[3]; /* half a step before x */
};

struct md_energy {
    double potential, kinetic; /* of all particles, at the same step */
};

struct md_state {
    const struct checkpoint_world *world;
    struct md_parameters parameters;
    int64_t step;
    int64_t n, cells;                /* cells in each dimension, and in total */
    struct checkpoint_particles own; /* struct md_particle, ordered by cell, then id */
    int64_t *first; /* index in `own` of each cell's first particle; first[cells]: own.count */
};

/* Initializes a state without particles. If the cube is too small, rank 0 prints a message and
 * all ranks return false. *world must stay valid. Collective. */
bool md_state_init(struct md_state *, const struct checkpoint_world *,
                   const struct md_parameters *);
void md_state_free(struct md_state *);

/* Sends each particle to the rank that owns its cell. Returns false, without a message, if a
 * particle is outside the cube or the total is not parameters.particles. Collective. */
bool md_state_distribute(struct md_state *);

/* Computes the energies at s->step and, if `move`, advances the state to the next step. If a
 * particle moves by a cell or more, or an energy is NaN, rank 0 prints a message and all ranks
 * return false; the state is then invalid. Collective. */
bool md_step(struct md_state *, bool move, struct md_energy *);

#endif
