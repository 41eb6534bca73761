/*
 * limebeginning.h - tell a container, also one whose beginning is damaged, from any other file.
 */
#ifndef LIMEBEGINNING_H
#define LIMEBEGINNING_H

#include "limefile.h"

/* Reads 512 bytes of a container, and at most 1 MiB of another file. Returns
 *   1: the file begins with the magic number of a record header;
 *   0: it is not a container, and was none;
 *   LIMEFILE_D_EMPTY, LIMEFILE_E_ZEROS or LIMEFILE_E_BEGINNING: it was a container, or was to
 *   become one. *out is the finding then; its `have` is where a record header follows, or 0;
 *   -errno: it cannot be read, and out->code is 0. */
int limefile_beginning(struct limefile_source *, struct limefile_finding *out);

#endif
