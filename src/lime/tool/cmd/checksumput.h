/* checksumput.h - a scidac-checksum record for data that are in a container */
#ifndef CHECKSUMPUT_H
#define CHECKSUMPUT_H

#include "edit.h"
#include "limeildg.h"

/*
 * Both return an exit status, after a message if it is not GOOD, and come back when all is on
 * the disk. What they leave after a crash is what lime append and lime replace leave.
 *
 * checksum_add: a new record. It comes last, if nothing between the data and the end of the
 * container could take it for its own; else behind the data, for which the container is written
 * anew. The struct edit is good for nothing but edit_close() afterwards.
 *
 * checksum_replace: other data in a record that is there; in place if they fit, filled up with
 * blanks.
 */
int checksum_add(struct edit *, const struct limefile_fields *, const struct limefile_field *,
                 const struct limefile_checksum *);
int checksum_replace(struct edit *, uint64_t ordinal, const struct limefile_checksum *);

#endif
