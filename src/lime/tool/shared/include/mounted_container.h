/* mounted_container.h - read a container that limefs shows as a directory as if it were a file
 *
 * In the directory each record is a file: its extended attributes give the record's header and
 * padding, its contents are the record's data. While a program writes to the container, padding
 * reads as zeros. Deviations, and a fault at which the records end, are reported as for the
 * file. */
#ifndef MOUNTED_H
#define MOUNTED_H

#include "limefile.h"

struct mounted_container;

/* Returns true if limefs shows a container as this directory; otherwise false, with errno. */
bool mounted_is_container(const char *dir);

/* Opens such a directory. Returns 0 or -errno. -ESTALE: the container has just changed. */
int mounted_open(const char *dir, struct mounted_container **out);
void mounted_close(struct mounted_container *); /* NULL is allowed */

/* Returns the format of the file that limefs shows as the container: "nersc", "milc",
 * "openqcd"; or NULL for a LIME container. */
const char *mounted_format(const struct mounted_container *);

/* Returns the directory's descriptor, which mounted_close() closes. */
int mounted_fd(const struct mounted_container *);

/* Returns the path of the file that limefs shows as `dir`, or NULL if this process cannot find
 * it. The caller frees it. */
char *mounted_file(const char *dir);

/* Returns the source, which lives until mounted_close(). */
struct limefile_source *mounted_source(struct mounted_container *);

/* Opens the data of a record; `ordinal` must be valid. Returns a descriptor that the caller
 * closes, or -errno. The data begin at offset 0. */
int mounted_open_data(const struct mounted_container *, uint64_t ordinal);

/* Reads the attribute user.lime.NAME of a record, even if the record's data cannot be opened.
 * Returns the attribute's length, or -errno. `value` gets a terminating NUL. */
#define MOUNTED_VALUE_MAX 512
int mounted_read_attribute(const struct mounted_container *, uint64_t ordinal, const char *name,
                           char value[MOUNTED_VALUE_MAX]);

#endif
