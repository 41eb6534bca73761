/* recordput.h - small records, metadata, written into a container: new ones, and others in the
 * place of old ones */
#ifndef RECORDPUT_H
#define RECORDPUT_H

#include "edit.h"

/*
 * All return an exit status, after a message if it is not GOOD, and come back when all is on
 * the disk. What a crash leaves is the container as it was, or as it is to be, but for a tail
 * that lime repair cuts. The struct edit is good for nothing but edit_close() afterwards.
 */

/* A new record at the end of the container, in its last message. */
int record_append(struct edit *, const char *type, const void *data, size_t n);

/* Other data in a record: in place if there is room, filled up with `fill`; the last record of
 * a container gets the right length too. Else the container is written anew. */
int record_put(struct edit *, const struct limefile_record *, const void *data, size_t n,
               char fill);

#endif
