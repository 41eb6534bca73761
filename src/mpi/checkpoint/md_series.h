/*
 * md_series.h - checkpoints of a molecular-dynamics run
 */
#ifndef CHECKPOINT_MD_SERIES_H
#define CHECKPOINT_MD_SERIES_H

#include "lemon_series.h"
#include "md.h"

#include <limits.h>

/* What a checkpoint of a run has in addition to the particles: a record before them, in a
 * message of its own, as text. */
#define MD_RECORD_TYPE "lime-checkpoint-run"

struct md_series {
    LemonSeries *series;
    const char *prefix;  /* not owned */
    char read[PATH_MAX]; /* the checkpoint that md_series_load() has read, or "" */
    bool overlap;        /* steps go on while one is written */
    bool writing;
    int64_t count;           /* published */
    double handing, waiting; /* seconds */
    double begun, under_way; /* the one being written began then; of all, until published */
};

/* All are collective; false: rank 0 has said why. */

bool md_series_open(const struct checkpoint_world *, const char *prefix, int64_t keep,
                    bool overlap, struct md_series *);

/* Publishes what is being written, if all is good. */
bool md_series_close(const struct checkpoint_world *, struct md_series *, bool good);

/* Begins to write the state, having waited for the one before; publishes it where steps are not
 * to go on. start: the total energy at step 0. */
bool md_series_write(struct md_series *, const struct md_state *, double start);

/* Between steps: publishes what has come to the disk. */
bool md_series_look(const struct checkpoint_world *, struct md_series *);

/* The newest that is good, and from then on those after it do not count. *found: whether there
 * is any; false: there are some, and none is good. A state that was found must be freed. */
bool md_series_load(const struct checkpoint_world *, struct md_series *, struct md_state *,
                    double *start, bool *found);

/* Writes the state to a file that is not of a series. */
bool md_file_save(const char *path, bool force, const struct md_state *, double start);

#endif
