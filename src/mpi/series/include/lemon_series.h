// SPDX-License-Identifier: BSD-3-Clause
/*
 * lemon_series.h - Lemon: write a series of checkpoints and keep the newest ones.
 *
 * A series consists of the files PREFIX.NUMBER.lime; NUMBER, for example a time step, has at
 * least twelve decimal digits. Each file with such a name is always a complete container on the
 * disk. While a checkpoint is being written, its file is .PREFIX.NUMBER.*.part in the same
 * directory. lemonSeriesEnd() syncs this file, renames it, syncs the directory, and only then
 * removes older checkpoints. So once a series has a checkpoint, a kill or a power failure at
 * any moment leaves at least one checkpoint to restart from. docs/cells.md shows a program.
 *
 * The rules of lemon.h apply: all calls are collective; an error on one rank gives the same
 * code on each; messages with the reasons go to the handler of lemonSetMessageHandler(). Only
 * one thread at a time may use a series.
 */
#ifndef LEMON_SERIES_H
#define LEMON_SERIES_H

#include "lemon.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lemon_series LemonSeries;

/* Opens a series. prefix: an existing directory and the beginning of the file names. keep:
 * number of checkpoints to keep, at least 1. info: for the files (MPI_File_open()) and their
 * writers (lemonWriterSetInfo()); Lemon copies it. All arguments are the same on each rank.
 *
 * Rank 0 locks the file .PREFIX.lock, which is never removed; the lock ends with rank 0's
 * process at the latest. If another run has the series open, waits up to 10 seconds for its end
 * (a killed run takes a moment to end); LEMON_ERR_PARAM if it does not end. If the file system
 * has no locks, a message warns that Lemon cannot detect other runs. Removes the unfinished
 * checkpoints of earlier runs. LEMON_ERR_WRITE if the directory cannot be opened or written.
 * After an error *series is NULL. */
int lemonOpenSeries(char const *prefix, int keep, MPI_Info info, MPI_Comm comm,
                    LemonSeries **series);

/* Closes a series. If a checkpoint is being written, aborts it and returns
 * LEMON_ERR_LAST_NOT_WRITTEN. Returns LEMON_SUCCESS if series is NULL. */
int lemonCloseSeries(LemonSeries *series);

/* Finds the newest checkpoint whose number is less than `before` (LEMON_SERIES_NEWEST: no
 * limit). Sets *number, and copies the file's path to `path`, a buffer of `bytes` bytes.
 * LEMON_EOF if no checkpoint is found. The file is complete; its checksums detect later damage.
 * If the program cannot read the file, it can call this again with before = *number. */
#define LEMON_SERIES_NEWEST INT64_MAX
int lemonSeriesLatest(LemonSeries *series, int64_t before, int64_t *number, char *path,
                      size_t bytes);

/* Prepares the series for a program that continues from `number`: newer checkpoints (damaged
 * ones, or those of a run to be discarded) become invalid. The next lemonSeriesEnd() removes
 * them when the data of the new checkpoint are on the disk, just before it renames that file.
 * LEMON_ERR_PARAM if number is negative or a checkpoint is being written. */
int lemonSeriesRewind(LemonSeries *series, int64_t number);

/* Begins checkpoint `number`, which must be greater than the numbers of all valid checkpoints
 * (otherwise LEMON_ERR_PARAM; see lemonSeriesRewind()). *writer accepts all calls of lemon.h
 * and lemon_cells.h except lemonDestroyWriter(), because the series destroys it. Closing a
 * record of *writer does not wait for the disk, unless lemonWriterSetVerify() was called.
 *
 * Until lemonSeriesEnd(), a thread on each node, which calls no MPI, writes the data back to
 * the disk. So lemonSeriesEnd() waits only briefly if the program computes long enough after a
 * non-blocking write. With MPI_THREAD_MULTIPLE, such writes block: see docs/lemon.md. */
int lemonSeriesBegin(LemonSeries *series, int64_t number, LemonWriter **writer);

/* Sets *done to 1 if all written data are on the disk, otherwise to 0. With 1, lemonSeriesEnd()
 * would return soon. Call this only after the checkpoint's last call that writes, blocking or
 * not. This call does not wait for the disk, so a program can make it after each time step. */
int lemonSeriesTest(LemonSeries *series, int *done);

/* Waits for a pending call, closes the open record, and publishes the checkpoint: its data and
 * name are then on the disk. Finally removes all but the newest `keep` checkpoints. If that
 * fails, this call only logs a message, and the next lemonSeriesEnd() tries again.
 *
 * After an error this checkpoint is removed, other valid ones are unchanged, and the program
 * may begin the next one. LEMON_ERR_LAST_NOT_WRITTEN if no record was written, or if the last
 * record is incomplete or has no ME. LEMON_ERR_WRITE if the checkpoint cannot be written to the
 * disk. If only the sync of the directory fails, the checkpoint is kept and is valid. */
int lemonSeriesEnd(LemonSeries *series);

/* Aborts the checkpoint and removes its file. If no checkpoint is being written, this call,
 * lemonSeriesEnd() and lemonSeriesTest() return LEMON_ERR_CLOSE. */
int lemonSeriesAbort(LemonSeries *series);

#ifdef __cplusplus
}
#endif

#endif
