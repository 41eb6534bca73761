/*
 * write_buffers.h - write to containers through the job: gather a program's writes in large
 * buffers, in the second half of the window, from which the job writes them.
 *
 * A stream of writes fills write buffers. Each holds a range of the container that ends at or
 * before the next multiple of an extent. The daemon sends a full buffer to the job, whose ranks
 * write it together, and fills the next buffers in the meantime. If the job is lost or fails,
 * the daemon writes the bytes from the buffer itself. So a buffer is reused only after its
 * bytes are in the container, or an error was noted for the next flush or sync.
 */
#ifndef LIMEFS_WRITE_BUFFERS_H
#define LIMEFS_WRITE_BUFFERS_H

#include "range_set.h"
#include "snapshot.h"

#include <stdatomic.h>

/* The part of a writer (writer.h) that the job's code uses. */
struct limefs_written {
    struct limefs_snapshot *snap;
    int fd;               /* the container, for local writes; guarded by the writer's lock */
    atomic_bool unsynced; /* data was written, locally or by ranks, and not synced */
    atomic_int syncing;   /* syncs under way, which may have cleared `unsynced` */

    /* Guarded by the job's lock: */
    int write_error; /* -errno of a gathered write, not yet reported; or 0 */
    double changed;  /* time of this mount's last change of the container */
    uint64_t layout; /* number of changes that may have moved or resized a record; it rises
                        only while the writer's lock is held exclusively */
};

/* A stream of nearly sequential writes to [begin, next) of the container. No write buffer may
 * include bytes before `begin` or in `direct`: the stream does not send them (again), so the
 * buffer would never become full. */
struct limefs_write_stream {
    uint64_t begin, next, bytes;    /* bytes: number written so far, in large writes */
    struct limefs_range_set direct; /* ranges that were written without a buffer */
};

/* Adds n bytes for offset `at` of the container. Returns 1 if they were gathered or written; 0
 * without a job: the caller writes them; -errno. The caller holds the writer's lock, shared. */
int limefs_write_buffers_add(struct limefs *, struct limefs_written *,
                             struct limefs_write_stream *, const char *buf, size_t n,
                             uint64_t at);

/* Waits until all gathered bytes of [from, to) are written to the container, but not synced.
 * The caller holds the writer's lock in any mode. Returns 0, or -errno once after any gathered
 * write to the container has failed. */
int limefs_write_buffers_flush(struct limefs *, struct limefs_written *, uint64_t from,
                               uint64_t to);

/* Flushes everything and makes the ranks sync. The caller must then call fsync(), which covers
 * what the daemon and ranks on this host wrote. Returns 0 or -errno, -EIO if other hosts may
 * have lost data. */
int limefs_write_buffers_sync(struct limefs *, struct limefs_written *);

/* Notes that another file has replaced the container, so that the job opens that one before it
 * writes again. All data was synced before; the caller holds the writer's lock exclusively. */
void limefs_job_container_replaced(struct limefs *, const struct limefs_snapshot *);

#endif
