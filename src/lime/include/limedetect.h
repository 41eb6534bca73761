/* limedetect.h - distinguish a container, even with a damaged beginning, from other files. */
#ifndef LIMEDETECT_H
#define LIMEDETECT_H

#include "limefile.h"

/* Reads 512 bytes of a container and at most 1 MiB of another file. Returns
 *   1: the file begins with the magic number of a record header;
 *   0: it is another file, and was never a container;
 *   LIMEFILE_D_EMPTY, LIMEFILE_E_ZEROS or LIMEFILE_E_BEGINNING: it was a container, or was
 * meant to become one; *out is the finding, whose `have` is the offset of a later header, or 0;
 *   -errno: the file cannot be read, and out->code is 0. */
int limefile_detect_container(struct limefile_source *, struct limefile_finding *out);

#endif
