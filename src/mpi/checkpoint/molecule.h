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

/* All members that a format may have. Memory and checkpoints hold only the first bytes of it,
 * as many as the format has; the rest is zero, as is `gap`. */
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

/* An array of particles of `bytes` bytes each; data: malloc()ed. */
struct checkpoint_particles {
    unsigned char *data;
    int64_t count, capacity;
    int64_t bytes;
};

/* Adds a particle and returns it; its bytes are not set. */
void *checkpoint_particles_add(struct checkpoint_particles *);
void checkpoint_particles_free(struct checkpoint_particles *);

/* ---- comparison of two sets, byte for byte ---- */

enum {
    CHECKPOINT_MATCH_IDS = 10, /* the least ids of each side are kept */
};

struct checkpoint_match {
    int64_t only[2]; /* number of particles in one set and not in the other */
    int ids[2];      /* number of entries in `id` */
    uint64_t id[2][CHECKPOINT_MATCH_IDS];
};

/* Sorts and compares both sets. id: the field of the particles' ids, or NULL. Equal particles
 * are counted as often as they occur. */
void checkpoint_match(struct checkpoint_particles sets[2], const LemonField *id,
                      struct checkpoint_match *);

/* Adds an id; the least ones are kept, sorted. */
void checkpoint_match_add(struct checkpoint_match *, int side, uint64_t id);

#endif
