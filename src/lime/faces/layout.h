/*
 * layout.h - the array that a field is, with what its dimensions are called; inside of
 * src/lime/faces
 */
#ifndef LIMEFILE_LAYOUT_H
#define LIMEFILE_LAYOUT_H

#include "limeface.h"

struct face_layout {
    struct limefile_array array;
    const char *name[LIMEFILE_ARRAY_DIMS_MAX]; /* of each dimension; all differ */
    unsigned origin; /* parity of the first site's coordinates in the whole lattice */
};

/* As limefile_array_of(). */
int face_layout_of(const struct limefile_field *, struct face_layout *out);

/* Whether such an array has that face. */
bool face_layout_has(const struct limefile_array *, const struct limefile_facename *);

/* "'>c16'" without the quotes: the type of an element, as numpy writes it. `precision`: bits of
 * a real number; 0: bytes. */
#define FACE_DTYPE_MAX 8
void face_layout_dtype(const struct limefile_array *, unsigned precision, bool little,
                       char out[FACE_DTYPE_MAX]);

#endif
