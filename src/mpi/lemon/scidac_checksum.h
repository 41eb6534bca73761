/* scidac_checksum.h - format and parse the text of a scidac-checksum record; no MPI */
#ifndef LEMON_SCIDAC_H
#define LEMON_SCIDAC_H

#include "limefile.h"

enum {
    LEMON_SCIDAC_TEXT_MAX = 256,       /* buffer size for the text */
    LEMON_SCIDAC_RECORD_MAX = 1 << 16, /* limit; a longer record is not a checksum */
};

/* Formats the text as tmLQCD does. Returns its length, below LEMON_SCIDAC_TEXT_MAX. */
int lemon_scidac_format(const struct limefile_checksum *, char *text);

/* Parses a text, which may be arbitrary bytes. Accepts the texts of all known writers, but not
 * all of XML: element names with or without a namespace, attributes, comments, white space, 1
 * to 8 hex digits with or without 0x. Returns 0, or -1 if suma or sumb is missing. */
int lemon_scidac_parse(const char *text, size_t n, struct limefile_checksum *);

#endif
