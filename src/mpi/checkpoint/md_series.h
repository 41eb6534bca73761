/* md_series.h - write and read checkpoints of a molecular-dynamics run */
#ifndef CHECKPOINT_MD_SERIES_H
#define CHECKPOINT_MD_SERIES_H

#include "lemon_series.h"
#include "md.h"

#include <limits.h>

/* The text record that a checkpoint of a run has before the particles, in its own message. */
#define MD_RECORD_TYPE "lime-checkpoint-run"

struct md_series {
    LemonSeries *series;
    const char *prefix;         /* not owned */
    char loaded_path[PATH_MAX]; /* the checkpoint that md_series_load() has read, or "" */
    bool overlaps;              /* steps continue while a checkpoint is written */
    bool is_writing;
    int64_t published;                  /* published checkpoints */
    double start_seconds, wait_seconds; /* seconds spent starting and waiting for writes */
    double write_start, write_seconds;  /* of this write; total seconds until publication */
};

/* All are collective; they return false after a message of rank 0. */

bool md_series_open(const struct checkpoint_world *, const char *prefix, int64_t keep,
                    bool overlap, struct md_series *);

/* Publishes the checkpoint being written if `good`, otherwise aborts it; closes the series. */
bool md_series_close(const struct checkpoint_world *, struct md_series *, bool good);

/* Waits for the previous checkpoint and begins to write the state; without overlap also
 * publishes it. start: the total energy at step 0. */
bool md_series_write(struct md_series *, const struct md_state *, double energy_at_0);

/* Call between steps: publishes a checkpoint whose write has completed. */
bool md_series_poll(const struct checkpoint_world *, struct md_series *);

/* Reads the newest good checkpoint and drops newer ones from the series. Sets *found to false
 * if the series is empty; returns false if none is good. The caller frees the state. */
bool md_series_load(const struct checkpoint_world *, struct md_series *, struct md_state *,
                    double *energy_at_0, bool *found);

/* Writes the state to a file outside of the series. */
bool md_state_save(const char *path, bool force, const struct md_state *, double energy_at_0);

#endif
