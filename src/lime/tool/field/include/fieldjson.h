/* fieldjson.h - a field for scripts: the array that it is */
#ifndef FIELDJSON_H
#define FIELDJSON_H

#include "limeildg.h"

#include <stdio.h>

/* An object as numpy has it: shape, lattice_dims, dtype, and the offset of the data in the
 * container; null if the field is no array. */
void fieldjson_array(FILE *, const struct limefile_field *);

#endif
