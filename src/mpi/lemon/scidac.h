/* scidac.h - the text of a record scidac-checksum; pure, no MPI */
#ifndef LEMON_SCIDAC_H
#define LEMON_SCIDAC_H

#include "limefile.h"

enum {
    LEMON_SCIDAC_BYTES = 256,         /* room for the text */
    LEMON_SCIDAC_BYTES_MAX = 1 << 16, /* more is no such text */
};

/* As tmLQCD writes it; returns the length without the NUL, less than LEMON_SCIDAC_BYTES. */
int lemon_scidac_print(const struct limefile_checksum *, char *text);

/* Any bytes: no parser of XML, but enough for what has been written so far: names of elements
 * with or without a namespace, attributes, comments, white space, 1 to 8 digits with or without
 * 0x. 0, or -1 if there is no suma or no sumb. */
int lemon_scidac_parse(const char *text, size_t n, struct limefile_checksum *);

#endif
