/*
 * mounted.h - a container that limefs shows as a directory, as the bytes that it has: headers
 * are attributes of its records, their data are read from the files.
 *
 * Damage to padding below the mount is not visible; damage to headers, and the fault that ends
 * the list of records, are.
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

/* The attribute user.lime.NAME of a record, whether or not its data can be opened: its length,
 * or -errno. The value is NUL-terminated. */
#define MOUNTED_VALUE_MAX 512
int mounted_attribute(const struct mounted *, uint64_t ordinal, const char *name,
                      char value[MOUNTED_VALUE_MAX]);

#endif
