/*
 * guise.h - what is shown as a container and is none: a configuration's file in another format,
 * or the volumes of a set that are one together (-o formats). It is never written to.
 */
#ifndef LIMEFS_GUISE_H
#define LIMEFS_GUISE_H

#include "limefile.h"

#include <sys/stat.h>

struct limefile_gauge;
struct limefs_guise;
struct limefs_joined;

/* Of a file; fd stays the caller's, and must outlive it. LIMEFILE_E_GAUGE_UNKNOWN: it has none;
 * others of these or -errno: it cannot be shown. */
int limefs_guise_of_file(int fd, struct limefs_guise **);

/* Of volumes, which it takes over, also after an error. */
int limefs_guise_of_set(struct limefs_joined *, struct limefs_guise **);

void limefs_guise_close(struct limefs_guise *); /* NULL: nothing happens */
struct limefile_source *limefs_guise_source(const struct limefs_guise *);
size_t limefs_guise_memory(const struct limefs_guise *);

/* Returns the configuration in another format; NULL for a set of volumes, and for a container,
 * which has no guise. */
const struct limefile_gauge *limefs_guise_gauge(const struct limefs_guise *);

/* The volumes, or NULL. */
const struct limefs_joined *limefs_guise_set(const struct limefs_guise *);

#endif
