/* molecule.h - molecules in memory and in checkpoints, in the three formats of MarDyn */
#ifndef CHECKPOINT_MOLECULE_H
#define CHECKPOINT_MOLECULE_H

#include "lemon_cells.h"

#include <stdbool.h>

enum checkpoint_format {
    CHECKPOINT_ICRV,   /* id, component, position, velocity */
    CHECKPOINT_ICRVQD, /* the same with orientation and angular momentum */
    CHECKPOINT_IRV,    /* id, position, velocity; the component is 1 */
    CHECKPOINT_FORMATS,
};

extern const char *const checkpoint_format_names[CHECKPOINT_FORMATS + 1]; /* ends with NULL */

/* A molecule with the members of all formats. Arrays and checkpoints store only its first
 * bytes, as many as checkpoint_layout() has for the format. `gap`, and members that the format
 * lacks, are 0. */
struct checkpoint_molecule {
    uint64_t id;
    uint32_t component; /* from 1 on; 0 in IRV */
    uint32_t gap;
    double position[3], velocity[3];
    double orientation[4]; /* a quaternion */
    double angular_momentum[3];
};

/* Returns the size and the fields of a particle in this format, in a static table. */
const LemonParticle *checkpoint_layout(enum checkpoint_format);

/* Returns true if the layout is that of a format, and sets the format. */
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

/* Adds a particle and returns it, valid until the next call. The caller sets its bytes. */
void *checkpoint_particles_add(struct checkpoint_particles *);
void checkpoint_particles_free(struct checkpoint_particles *);

/* ---- comparison of two sets, byte for byte ---- */

enum {
    CHECKPOINT_MATCH_IDS = 10, /* number of ids, the lowest, to keep for each set */
};

struct checkpoint_match {
    int64_t only[2]; /* number of particles in one set and not in the other */
    int ids[2];      /* number of entries in id[] */
    uint64_t id[2][CHECKPOINT_MATCH_IDS]; /* of these particles, in ascending order */
};

/* Compares two sets of particles of the same size, and may sort them. Equal particles of a set
 * count as often as they occur. id: the field with the ids to collect, or NULL. */
void checkpoint_match(struct checkpoint_particles sets[2], const LemonField *id,
                      struct checkpoint_match *);

/* Adds the id of a particle that only set `side` has, if it is one of the lowest. */
void checkpoint_match_add(struct checkpoint_match *, int side, uint64_t id);

#endif
