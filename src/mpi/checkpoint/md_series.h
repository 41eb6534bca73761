/* md_series.h - write and read checkpoints of a molecular-dynamics run */
#ifndef CHECKPOINT_MD_SERIES_H
#define CHECKPOINT_MD_SERIES_H

#include "lemon_series.h"
#include "md.h"

#include <limits.h>

/* Type of the text record, a message of its own, that precedes the particles of a run. */
#define MD_RECORD_TYPE "lime-checkpoint-run"

struct md_series {
    LemonSeries *series;
    const char *prefix;         /* not owned */
    char loaded_path[PATH_MAX]; /* the checkpoint that md_series_load() has read, or "" */
    bool overlaps;              /* the run continues while a checkpoint is written */
    bool is_writing;
    int64_t published;                  /* number of published checkpoints */
    double start_seconds, wait_seconds; /* seconds to start writes and to wait for them */
    double write_start, write_seconds;  /* start of the current write; seconds of all writes */
};

/* All functions are collective. If one returns false, rank 0 has printed a message. */

/* Opens a series that keeps the newest `keep` checkpoints. overlap: value for s->overlaps. */
bool md_series_open(const struct checkpoint_world *, const char *prefix, int64_t keep,
                    bool overlap, struct md_series *);

/* Publishes the checkpoint that is being written, or aborts it if `good` is false. Closes the
 * series. Returns false if this fails or `good` is false. */
bool md_series_close(const struct checkpoint_world *, struct md_series *, bool good);

/* Publishes the checkpoint that is being written, if any. Then begins a new checkpoint of the
 * state and, without overlap, publishes it, too. energy_at_0: the total energy at step 0. */
bool md_series_write(struct md_series *, const struct md_state *, double energy_at_0);

/* Publishes the checkpoint that is being written if it is complete. Call this between steps. */
bool md_series_poll(const struct checkpoint_world *, struct md_series *);

/* Reads the newest readable checkpoint and makes newer ones invalid (lemonSeriesRewind()). Sets
 * *found to false and returns true if the series is empty. Returns false if none of its
 * checkpoints is readable. The caller frees the state if *found. */
bool md_series_load(const struct checkpoint_world *, struct md_series *, struct md_state *,
                    double *energy_at_0, bool *found);

/* Writes the state to the file `path`, outside of a series. force: replace an existing file. */
bool md_state_save(const char *path, bool force, const struct md_state *, double energy_at_0);

#endif
