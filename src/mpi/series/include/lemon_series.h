/*
 * lemon_series.h - Lemon: a series of checkpoints, which keeps the newest ones.
 *
 * A series consists of the files PREFIX.NUMBER.lime; NUMBER, for example a time step, has at
 * least twelve decimal digits. Each file with such a name is always a complete container on the
 * disk. A checkpoint that is being written has another name (.PREFIX.NUMBER.*.part, in the same
 * directory) until lemonSeriesEnd() has synced it on all ranks, renamed it, and synced the
 * directory. Only then does it remove older checkpoints. So after the first checkpoint, a kill
 * or a power failure at any moment leaves one to restart from. docs/cells.md shows a program.
 *
 * The rules of lemon.h apply: all calls are collective; an error on one rank gives the same
 * code on each; lemonSetMessageHandler() receives the reasons. Only one thread at a time may
 * use a series.
 */
#ifndef LEMON_SERIES_H
#define LEMON_SERIES_H

#include "lemon.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lemon_series LemonSeries;

/*
 * Opens a series. prefix: an existing directory and the beginning of the file names. keep:
 * number of checkpoints to keep, at least 1. info: for the files (MPI_File_open()) and their
 * writers (lemonWriterSetInfo()); copied. All arguments are the same on each rank.
 *
 * Locks the file .PREFIX.lock, which is not removed. LEMON_ERR_PARAM if another run still has
 * the series open after 10 seconds (a killed run takes a moment to end). If the file system has
 * no locks, Lemon cannot detect another run, and a message says so. Rank 0 holds the lock,
 * which ends with its process at the latest. Removes unfinished checkpoints of dead processes.
 * LEMON_ERR_WRITE if the directory cannot be opened or written. After an error *series is NULL.
 */
int lemonOpenSeries(char const *prefix, int keep, MPI_Info info, MPI_Comm comm,
                    LemonSeries **series);

/* Closes a series and aborts an unfinished checkpoint: LEMON_ERR_LAST_NOT_WRITTEN.
 * LEMON_SUCCESS if series is NULL. */
int lemonCloseSeries(LemonSeries *series);

/*
 * Finds the newest checkpoint with a number less than `before` (LEMON_SERIES_NEWEST: no limit):
 * its number, and its path in `path`, a buffer of `bytes` bytes. LEMON_EOF for an empty series.
 * A program that cannot read it calls again with before = *number.
 *
 * The file is complete; its checksums detect later damage.
 */
#define LEMON_SERIES_NEWEST INT64_MAX
int lemonSeriesLatest(LemonSeries *series, int64_t before, int64_t *number, char *path,
                      size_t bytes);

/*
 * The program continues from `number`: newer checkpoints (damaged ones, or those of a run to be
 * discarded) become invalid. lemonSeriesEnd() removes them just before it renames the next
 * checkpoint, whose data are then on the disk. LEMON_ERR_PARAM if number is negative or a
 * checkpoint is being written.
 */
int lemonSeriesRewind(LemonSeries *series, int64_t number);

/*
 * Begins checkpoint `number`, which must be greater than all others (otherwise LEMON_ERR_PARAM;
 * see lemonSeriesRewind()). *writer accepts all calls of lemon.h and lemon_cells.h. Only
 * lemonSeriesEnd() and lemonSeriesAbort() destroy it. Closing a record does not wait for the
 * disk here, unless lemonWriterSetVerify() was called.
 *
 * In the meantime, a thread on each node, which calls no MPI, writes the data back to the disk.
 * So a program that computes between a non-blocking write and lemonSeriesEnd() does not wait
 * long there. With Open MPI this requires a level below MPI_THREAD_MULTIPLE: see docs/lemon.md.
 */
int lemonSeriesBegin(LemonSeries *series, int64_t number, LemonWriter **writer);

/*
 * Sets *done to whether all written data are on the disk, so that lemonSeriesEnd() returns
 * soon. Call it after the last call that writes, non-blocking or not. It does not wait, so a
 * program can call it after each time step, and publish the checkpoint early.
 */
int lemonSeriesTest(LemonSeries *series, int *done);

/*
 * Waits for a pending call, closes the open record, and publishes the checkpoint: when this
 * returns, data and name are on the disk. Then removes all but the last `keep` checkpoints; a
 * failure is reported by a message, and the next call retries.
 *
 * After an error the checkpoint is removed, the others are unchanged, and the next one may
 * begin. LEMON_ERR_LAST_NOT_WRITTEN if no record was written, or if the last one is incomplete
 * or has no ME. LEMON_ERR_WRITE if the checkpoint cannot be written to the disk; if only the
 * sync of the directory has failed, the checkpoint exists and is valid.
 */
int lemonSeriesEnd(LemonSeries *series);

/* Aborts the checkpoint and removes its file. LEMON_ERR_CLOSE, also from lemonSeriesEnd(),
 * if no checkpoint was begun. */
int lemonSeriesAbort(LemonSeries *series);

#ifdef __cplusplus
}
#endif

#endif
