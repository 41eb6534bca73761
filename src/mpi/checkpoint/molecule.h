/*
 * molecule.h - molecules in memory and in checkpoints, by the three formats of MarDyn
 */
#ifndef CHECKPOINT_MOLECULE_H
#define CHECKPOINT_MOLECULE_H

#include "lemon_cells.h"

#include <stdbool.h>

enum checkpoint_format {
    CHECKPOINT_ICRV,   /* id, component, position, velocity */
    CHECKPOINT_ICRVQD, /* and orientation, angular momentum */
    CHECKPOINT_IRV,    /* id, position, velocity; the component is 1 */
    CHECKPOINT_FORMATS,
};

extern const char *const checkpoint_format_names[CHECKPOINT_FORMATS + 1]; /* then NULL */

/* All that there may be. In memory and in checkpoints the first bytes of it, as many as the
 * format has; the rest is zero, as is `gap`. */
struct checkpoint_molecule {
    uint64_t id;
    uint32_t component; /* from 1 on; 0 in IRV */
    uint32_t gap;
    double position[3], velocity[3];
    double orientation[4]; /* a quaternion */
    double angular_momentum[3];
};

/* The bytes of each, and its fields. The table is static. */
const LemonParticle *checkpoint_particle(enum checkpoint_format);

/* Whether a checkpoint's particles are laid out so; which format it is. */
bool checkpoint_particle_find(const LemonParticle *, enum checkpoint_format *);
bool checkpoint_particle_same(const LemonParticle *, const LemonParticle *);

/* A field by its name; NULL. */
const LemonField *checkpoint_field(const LemonParticle *, const char *name);

/* Many of them, of `bytes` each; data: malloc()ed. */
struct checkpoint_particles {
    unsigned char *data;
    int64_t count, room;
    int64_t bytes;
};

/* For one more. Its bytes are not set. */
void *checkpoint_particles_add(struct checkpoint_particles *);
void checkpoint_particles_free(struct checkpoint_particles *);

/* ---- two sets compared, byte for byte ---- */

enum {
    CHECKPOINT_MATCH_IDS = 10, /* of each side are kept: the least */
};

struct checkpoint_match {
    int64_t only[2]; /* particles in one set and not in the other */
    int ids[2];      /* of `id` */
    uint64_t id[2][CHECKPOINT_MATCH_IDS];
};

/* Sorts both. id: where the particles' ids are, or NULL. Equal particles count as often as they
 * are there. */
void checkpoint_match(struct checkpoint_particles sets[2], const LemonField *id,
                      struct checkpoint_match *);

/* Keeps the least, sorted. */
void checkpoint_match_add(struct checkpoint_match *, int side, uint64_t id);

#endif
