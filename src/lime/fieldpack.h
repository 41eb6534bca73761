/* fieldpack.h - what is known of fields, in few bytes each; inside of src/lime */
#ifndef LIMEFILE_FIELDPACK_H
#define LIMEFILE_FIELDPACK_H

#include "limeildg.h"

/* Descriptions, one after another. A hostile container has a million of them. */
struct fieldpack {
    unsigned char *at; /* zero to begin with; to be freed */
    size_t used, capacity;
    size_t last; /* where the last one begins */
};

/*
 * Packs what describes the field: kind, name, precision, lattice, box, sites, site_bytes,
 * expected, datacount, colors, spins, disputed. Neighbours with the same description share it.
 * *where: what fieldpack_get() takes, never 0. The box of a field without a lattice is not
 * kept.
 */
int fieldpack_put(struct fieldpack *, const struct limefile_field *, uint64_t *where);

/* Fills in these members of the field, which are zero, and no others. */
void fieldpack_get(const struct fieldpack *, uint64_t where, struct limefile_field *);

#endif
