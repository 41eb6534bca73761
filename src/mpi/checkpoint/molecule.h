/* molecule.h - molecules in memory and in checkpoints, in the three formats of MarDyn */
#ifndef CHECKPOINT_MOLECULE_H
#define CHECKPOINT_MOLECULE_H

#include "lemon_cells.h"

#include <stdbool.h>

enum checkpoint_format {
    CHECKPOINT_ICRV,   /* id, component, position, velocity */
    CHECKPOINT_ICRVQD, /* ICRV with orientation and angular momentum */
    CHECKPOINT_IRV,    /* id, position, velocity; the component of each is 1 */
    CHECKPOINT_FORMATS,
};

extern const char *const checkpoint_format_names[CHECKPOINT_FORMATS + 1]; /* ends with NULL */

/* A molecule with the members of all formats. Arrays and checkpoints contain only its first
 * checkpoint_layout(format)->bytes bytes. `gap`, and members that the format lacks, are 0. */
struct checkpoint_molecule {
    uint64_t id;
    uint32_t component; /* from 1 on; 0 in IRV */
    uint32_t gap;
    double position[3], velocity[3];
    double orientation[4]; /* a quaternion */
    double angular_momentum[3];
};

/* Returns the size and the fields of a particle in this format: an entry of a static table. */
const LemonParticle *checkpoint_layout(enum checkpoint_format);

/* Finds the format with this layout. Returns false, and an arbitrary format, if none has it. */
bool checkpoint_find_format(const LemonParticle *, enum checkpoint_format *);
bool checkpoint_layouts_equal(const LemonParticle *, const LemonParticle *);

/* Returns the field with this name, or NULL. */
const LemonField *checkpoint_find_field(const LemonParticle *, const char *name);

/* A growing array of particles of `bytes` bytes each; data is allocated by malloc(). */
struct checkpoint_particles {
    unsigned char *data;
    int64_t count, capacity;
    int64_t bytes;
};

/* Adds a particle, which the caller must fill. Its address is valid until the next call. */
void *checkpoint_particles_add(struct checkpoint_particles *);
void checkpoint_particles_free(struct checkpoint_particles *);

/* ---- comparison of two sets, byte for byte ---- */

enum {
    CHECKPOINT_MATCH_IDS = 10, /* maximum number of ids that are stored for a set */
};

struct checkpoint_match {
    int64_t only[2];                      /* only[i]: number of particles that only set i has */
    int ids[2];                           /* ids[i]: number of entries in id[i] */
    uint64_t id[2][CHECKPOINT_MATCH_IDS]; /* id[i]: lowest ids of these particles, ascending */
};

/* Compares two sets, whose particles have the same size; may reorder each set. Equal particles
 * of the two sets are matched one to one. id: the field of the ids to store, or NULL. */
void checkpoint_match(struct checkpoint_particles sets[2], const LemonField *id,
                      struct checkpoint_match *);

/* Adds to id[side] the id of a particle that only this set has, if it is among the lowest. */
void checkpoint_match_add(struct checkpoint_match *, int side, uint64_t id);

#endif
