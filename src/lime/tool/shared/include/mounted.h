/*
 * mounted.h - a container that limefs shows as a folder, as the bytes that it has: headers are
 * put together from the attributes of its records, their data are read from the files.
 *
 * What is wrong with headers and padding below the mount is not seen; records, their types, and
 * the flags of messages are. Records after a fault are not there.
 */
#ifndef MOUNTED_H
#define MOUNTED_H

#include "limefile.h"

struct mounted;

/* True if the folder is one. False, with errno, if it is anything else. */
bool mounted_is(const char *folder);

/* 0, -errno; -ESTALE: it has been changed meanwhile. */
int mounted_open(const char *folder, struct mounted **out);
void mounted_close(struct mounted *); /* NULL: nothing happens */

/* Lives as long as it is open. */
struct limefile_source *mounted_source(struct mounted *);

/* The data of a record, from its first byte: a descriptor that the caller closes, or -errno. */
int mounted_data(const struct mounted *, uint64_t ordinal);

/* Why the list of records ends early, as the mount says; NULL if it does not. */
const char *mounted_fault(const struct mounted *);

#endif
