/*
 * lemon_series.h - Lemon: a series of checkpoints, of which the last ones are kept.
 *
 * A series is the files PREFIX.NUMBER.lime, NUMBER being twelve decimal digits (more if it
 * needs them), a time step for example. Of these names, each is at any time a complete
 * container that is on the disk: what is being written has another name (.PREFIX.NUMBER.*.part,
 * in the same folder) until lemonSeriesEnd() has synced it on all ranks, renamed it and synced
 * the folder. Only then older ones are removed. So a kill or a power failure at any moment
 * leaves a checkpoint to restart from, once there was one. docs/cells.md shows a program.
 *
 * The rules of lemon.h hold: all calls are collective; an error on one rank is the same code on
 * each; reasons go to lemonSetMessageHandler(). One thread at a time uses a series.
 */
#ifndef LEMON_SERIES_H
#define LEMON_SERIES_H

#include "lemon.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lemon_series LemonSeries;

/*
 * prefix: a folder, which exists, and the beginning of the names in it. keep: how many
 * checkpoints stay, 1 or more. info: of the files (MPI_File_open()) and their writers
 * (lemonWriterSetInfo()); copied. All is the same on each rank.
 *
 * Locks the file .PREFIX.lock, which stays there. LEMON_ERR_PARAM: another run has the series
 * open, and still has it after 10 seconds: one that was killed takes a moment to end. Where the
 * file system has no locks this cannot be noticed; a message says so. The lock is rank 0's, and
 * ends with it. What dead runs have left unfinished is removed.
 * LEMON_ERR_WRITE: the folder cannot be opened or written. *series: NULL after an error.
 */
int lemonOpenSeries(char const *prefix, int keep, MPI_Info info, MPI_Comm comm,
                    LemonSeries **series);

/* What is unfinished is given up: LEMON_ERR_LAST_NOT_WRITTEN. NULL is LEMON_SUCCESS. */
int lemonCloseSeries(LemonSeries *series);

/*
 * The newest checkpoint with a number below `before` (LEMON_SERIES_NEWEST: of all): its number,
 * and its path at `path`, which has room for `bytes`. LEMON_EOF: there is none. A program that
 * cannot read it asks for the one before it, with before = *number.
 *
 * That a file is whole is known; that nobody and no disk has damaged it since then, its
 * checksums tell.
 */
#define LEMON_SERIES_NEWEST INT64_MAX
int lemonSeriesLatest(LemonSeries *series, int64_t before, int64_t *number, char *path,
                      size_t bytes);

/*
 * The program goes on from `number`, and newer ones (damaged ones, or of a run that is not to
 * be continued) no longer count. They are removed when the next one is on the disk, just
 * before it gets its name. LEMON_ERR_PARAM: number is negative. */
int lemonSeriesRewind(LemonSeries *series, int64_t number);

/*
 * Begins checkpoint `number`, which is greater than all others (LEMON_ERR_PARAM; see
 * lemonSeriesRewind()). *writer writes any records into it, by the calls of lemon.h and
 * lemon_cells.h; it ends with lemonSeriesEnd() or lemonSeriesAbort(), and is not destroyed by
 * the program. Closing a record does not wait for the disk here, unless it is to be verified
 * (lemonWriterSetVerify()).
 *
 * Meanwhile, on each node a thread, which calls no MPI, brings what was written to the disk. So
 * a program that writes by a non-blocking call and computes between it and lemonSeriesEnd()
 * waits for little there. With Open MPI this needs less than MPI_THREAD_MULTIPLE: see
 * docs/lemon.md.
 */
int lemonSeriesBegin(LemonSeries *series, int64_t number, LemonWriter **writer);

/*
 * *done: whether all that was written is on the disk, so that lemonSeriesEnd() would be short.
 * Asked after the last call that writes, non-blocking or not; does not wait. A program that
 * asks between its steps publishes a checkpoint soon.
 */
int lemonSeriesTest(LemonSeries *series, int *done);

/*
 * Waits for what is pending, closes the record that is open, and publishes the checkpoint: it
 * is on the disk, name included, when this returns. Then removes all but the last `keep`; where
 * that fails a message says so, and it is tried again next time.
 *
 * After an error nothing of it is left, the others are as they were, and the next one can be
 * begun. LEMON_ERR_LAST_NOT_WRITTEN: no record was written, the last one is not full, or has no
 * ME. LEMON_ERR_WRITE: it cannot be brought to the disk; if it was the folder that could not be
 * synced the checkpoint is there, and is valid.
 */
int lemonSeriesEnd(LemonSeries *series);

/* Gives up what was begun. LEMON_ERR_CLOSE from both: nothing was begun. */
int lemonSeriesAbort(LemonSeries *series);

#ifdef __cplusplus
}
#endif

#endif
