/* md_series.h - write and read checkpoints of a molecular-dynamics run */
#ifndef CHECKPOINT_MD_SERIES_H
#define CHECKPOINT_MD_SERIES_H

#include "lemon_series.h"
#include "md.h"

#include <limits.h>

/* Type of the text record before the particles in a checkpoint of a run, in its own message. */
#define MD_RECORD_TYPE "lime-checkpoint-run"

struct md_series {
    LemonSeries *series;
    const char *prefix;         /* not owned */
    char loaded_path[PATH_MAX]; /* the checkpoint that md_series_load() has read, or "" */
    bool overlaps;              /* the run continues while a checkpoint is written */
    bool is_writing;
    int64_t published;                  /* number of published checkpoints */
    double start_seconds, wait_seconds; /* seconds spent starting and waiting for writes */
    double write_start, write_seconds;  /* start of this write; total until publication */
};

/* All are collective. If one returns false, rank 0 has printed a message. */

/* Opens a series that keeps the newest `keep` checkpoints. overlap: see `overlaps`. */
bool md_series_open(const struct checkpoint_world *, const char *prefix, int64_t keep,
                    bool overlap, struct md_series *);

/* Publishes a checkpoint being written or, if not `good`, aborts it. Closes the series. Returns
 * false also if `good` is false. */
bool md_series_close(const struct checkpoint_world *, struct md_series *, bool good);

/* Publishes the previous checkpoint and begins to write the state; without overlap also
 * publishes this one. energy_at_0: the total energy at step 0. */
bool md_series_write(struct md_series *, const struct md_state *, double energy_at_0);

/* Call between steps: publishes a checkpoint whose write has completed. */
bool md_series_poll(const struct checkpoint_world *, struct md_series *);

/* Reads the newest readable checkpoint, and drops newer ones from the series. Sets *found to
 * false if the series is empty; returns false if none is readable. The caller frees the
 * state. */
bool md_series_load(const struct checkpoint_world *, struct md_series *, struct md_state *,
                    double *energy_at_0, bool *found);

/* Writes the state to a file outside of the series. If `force`, replaces an existing file. */
bool md_state_save(const char *path, bool force, const struct md_state *, double energy_at_0);

#endif
