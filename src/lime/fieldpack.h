/* fieldpack.h - store descriptions of fields in few bytes each. For src/lime only. */
#ifndef LIMEFILE_FIELDPACK_H
#define LIMEFILE_FIELDPACK_H

#include "limeildg.h"

/* A list of packed descriptions. A malicious container can have a million of them. */
struct fieldpack {
    unsigned char *bytes; /* NULL at first; the owner frees it */
    size_t used, capacity;
    size_t last; /* offset of the last description */
};

/* Packs the description of a field: kind, name, precision, lattice, box, sites, site_bytes,
 * expected, datacount, colors, spins, descriptions_differ. Adjacent fields with equal
 * descriptions share one. *position, which is never 0, is for fieldpack_get(). A box without a
 * lattice is not stored. */
int fieldpack_put(struct fieldpack *, const struct limefile_field *, uint64_t *position);

/* Fills in the members that fieldpack_put() packs, which must be zero, and no others. */
void fieldpack_get(const struct fieldpack *, uint64_t position, struct limefile_field *);

#endif
