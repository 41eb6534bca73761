/*
 * md.h - a small molecular-dynamics run: Lennard-Jones particles in a periodic cube
 *
 * Units are reduced: epsilon, sigma and the mass are 1. A particle has x at a step and v half a
 * step before it (leapfrog). The trajectory is the same, bit for bit, on any number of ranks
 * and after any restart: the cell of a particle follows from its position alone; the forces on
 * a particle are added cell by cell in one order, and in a cell by id; sums over particles are
 * exact.
 *
 * The cube is cut into n * n * n cells whose edges are at least the cut-off, numbered with z
 * fastest. Each rank owns a range of these numbers.
 */
#ifndef CHECKPOINT_MD_H
#define CHECKPOINT_MD_H

#include "molecule.h"
#include "world.h"

struct md_parameters {
    int64_t particles;
    double length;  /* of the cube, from 0 on */
    double cut_off; /* of the potential, which is shifted to be 0 there */
    double dt;
    double temperature; /* of the velocities at step 0 */
    int64_t seed;       /* of these */
};

/* As a checkpoint has it: the first bytes of struct checkpoint_molecule. */
struct md_particle {
    uint64_t id;
    uint32_t component, gap; /* 1, 0 */
    double x[3];
    double v[3]; /* half a step before x */
};

struct md_energy {
    double potential, kinetic; /* of all particles; both at the same time */
};

struct md_state {
    const struct checkpoint_world *world;
    struct md_parameters parameters;
    int64_t step;
    int64_t n, cells;                /* n in each dimension, cells in all */
    struct checkpoint_particles own; /* of struct md_particle, ordered by cell, then id */
    int64_t *first;                  /* in own, of each cell; one more at the end */
};

/* There are no particles yet. False: rank 0 has said why. Collective. */
bool md_state_set(struct md_state *, const struct checkpoint_world *,
                  const struct md_parameters *);
void md_state_free(struct md_state *);

/* Gives each rank the particles of its cells; `own` has some of all, in any order. Collective;
 * false if their number in all is not what it should be, or one is outside. */
bool md_state_distribute(struct md_state *);

/* Energies at `step` (they need forces); with `move` goes on to the next one. Collective.
 * false: a particle has moved too far, or no number is left; rank 0 has said so. */
bool md_step(struct md_state *, bool move, struct md_energy *);

#endif
