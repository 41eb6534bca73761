/*
 * md.h - a small molecular-dynamics run: Lennard-Jones particles in a periodic cube
 *
 * Units are reduced: epsilon, sigma and the mass are 1. What is kept of a particle is x at a
 * step and v half a step before it (leapfrog). The trajectory is the same, bit for bit, on any
 * number of ranks and after any restart: the cell of a particle follows from its position
 * alone; the forces on it are added by itself, cell by cell in one order, and in a cell by
 * number; sums over particles are exact.
 *
 * Memory: a rank without memory ends the job, which its last checkpoint survives.
 */
#ifndef CHECKPOINT_MD_H
#define CHECKPOINT_MD_H

#include "world.h"

/* ---- sums that depend on no order ---- */

__extension__ typedef __int128 md_wide;

struct md_sum {
    md_wide value; /* in units of 2^-40 */
    bool bad;      /* something was no number, or too great */
};

void md_sum_add(struct md_sum *, double);

/* Of all ranks, on all ranks; what was bad is NaN. Collective. */
void md_sum_all(struct md_sum *, int count, double *values);

/* ---- the physics ---- */

struct md_parameters {
    int64_t particles;
    double length;  /* of the cube, from 0 on */
    double cut_off; /* of the potential, which is shifted to be 0 there */
    double dt;

    /* Of the velocities at step 0; -1: a checkpoint that does not have them. */
    double temperature;
    int64_t seed;
};

struct md_particle {
    uint64_t id;
    double x[3];
    double v[3]; /* half a step before x */
};

struct md_energy {
    double potential, kinetic; /* of all particles; both at the same time */
};

/* ---- cells and ranks: grid.c ---- */

/* Which ranks are near: they hold cells that this one needs. */
struct md_peer {
    int rank;
    int64_t cells; /* of those that it needs from here, by place */
    int64_t *cell;
};

/* The cube is cut into n * n * n cells whose edges are at least the cut-off, and they are
 * divided among ranks by a grid. A rank sees its own cells and those around: each cell once,
 * even where it is on both sides. Their places are numbered, x slowest. */
struct md_grid {
    double length, scale; /* scale: cells in a unit of length */
    int64_t n;
    int ranks, rank;
    int grid[3], at[3];
    int64_t lower[3], upper[3]; /* own cells: [lower, upper) */
    int64_t seen[3];            /* in each dimension */
    int64_t *place[3];          /* in it, of each of the n; -1: not seen */
    int64_t *coordinate[3];     /* of each that is seen */
    int64_t places;
    int peers;
    struct md_peer *peer; /* ordered by rank */
};

/* False, and why: too few cells. Local. */
bool md_grid_set(struct md_grid *, const struct checkpoint_world *,
                 const struct md_parameters *, char reason[CHECKPOINT_ERROR_BYTES]);
void md_grid_free(struct md_grid *);

/* Of a position in [0, length) of each dimension. */
int64_t md_grid_place(const struct md_grid *, const double x[3]); /* -1: not seen */
int md_grid_owner(const struct md_grid *, const double x[3]);

/* ---- exchange.c ---- */

/* What goes to each of some ranks, and comes from them: items of one size. */
struct md_parcel {
    int rank;
    unsigned char *out;
    int64_t count, room; /* items */
};

struct md_post {
    int parcels;
    struct md_parcel *parcel;
    int64_t item; /* bytes */
};

/* Collective among these ranks, which all name each other. *in: what has come, in the parcels'
 * order, appended to the *count items there, for which there is *room. Empties the parcels. */
void md_post_exchange(struct md_post *, void **in, int64_t *count, int64_t *room);
void md_post_add(struct md_post *, int parcel, const void *item);
void md_post_free(struct md_post *);

/* Room for `items` of these bytes, of which there were *room; never NULL. */
void *md_room(void *data, int64_t items, int64_t *room, int64_t bytes);
_Noreturn void md_no_memory(void);

/* ---- the state of a rank ---- */

struct md_position {
    uint64_t id;
    double x[3];
};

struct md_state {
    struct md_parameters parameters;
    struct md_grid grid;
    int64_t step;
    struct md_particle *own; /* ordered by place, then number */
    int64_t count, room;
    int64_t *first; /* of the places' own particles; one more at the end */
    struct md_post moving, halo;

    /* What it sees, ordered likewise: for a step. */
    struct md_position *near;
    int64_t near_count, near_room;
    double (*seen)[3];
    int64_t seen_room;
    int64_t *seen_first;
    int64_t *cursor; /* of the places, for ordering */

    struct md_particle *sorted; /* for ordering */
    int64_t sorted_room;
};

/* False: rank 0 has said why. grid is set; there are no particles yet. Collective. */
bool md_state_set(struct md_state *, const struct checkpoint_world *,
                  const struct md_parameters *);
void md_state_free(struct md_state *);

/* Particles of any place to the ranks that own it; `own` has them in any order. Collective;
 * false if their number in all is not what it should be, or one is outside. */
bool md_state_distribute(struct md_state *);

/* Orders `own`; all are in cells of this rank. */
void md_state_sort(struct md_state *);

/* Collects what the step needs from others. Collective. */
void md_state_look(struct md_state *);

/* ---- step.c ---- */

/* Energies at `step` (they need forces); with `move` goes on to the next one. Collective.
 * false: a particle has moved too far, or no number is left; rank 0 has said so. */
bool md_step(struct md_state *, const struct checkpoint_world *, bool move, struct md_energy *);

/* ---- start.c ---- */

/* Particles on a lattice, with velocities of the temperature, drawn by the seed, that add up to
 * 0. `own` has some of them. Collective. */
void md_start(struct md_state *, const struct checkpoint_world *);

#endif
