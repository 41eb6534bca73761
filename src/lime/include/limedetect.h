/* limedetect.h - distinguish a container, even with a damaged beginning, from other files. */
#ifndef LIMEDETECT_H
#define LIMEDETECT_H

#include "limefile.h"

/* Reads 512 bytes of a container and at most 1 MiB of another file. Returns
 *   1: the file begins with the magic number of a record header;
 *   0: the file is not a container and never was one;
 *   LIMEFILE_D_EMPTY, _E_ZEROS or _E_BEGINNING: the file was a container or was to become one;
 *   *out is the finding, and its `have` is the offset of a later header, or 0;
 *   -errno: the file cannot be read. out->code is 0 unless this function returns a finding. */
int limefile_detect_container(struct limefile_source *, struct limefile_finding *out);

#endif
