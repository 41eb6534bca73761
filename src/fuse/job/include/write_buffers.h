/*
 * write_buffers.h - write to containers through the job: gather a program's writes in large
 * buffers, in the second half of the window, from which the job writes them.
 *
 * A stream of writes fills write buffers. A buffer holds a range of the container that crosses
 * no multiple of the extent. The daemon sends a full buffer to the job, whose ranks write it
 * together, and fills the next buffers in the meantime. If the job is lost or fails, the daemon
 * itself writes the buffer's bytes to the container. A buffer is reused only after its bytes
 * are in the container, or after the daemon has stored an error for the next flush or sync.
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
    atomic_bool unsynced; /* data was written (locally or by ranks) but not yet synced */
    atomic_int syncing;   /* number of syncs under way; they may have cleared `unsynced` */

    /* Guarded by the job's lock: */
    int write_error; /* -errno of a gathered write, if no call has returned it yet; or 0 */
    double changed;  /* time of this mount's latest change of the container */
    uint64_t layout; /* number of changes that may have moved or resized a record; it rises
                        only while the writer's lock is held exclusively */
};

/* A stream of nearly sequential writes to [begin, next) of the container. A write buffer must
 * not include bytes before `begin`, which the program does not write, or bytes in `direct`,
 * which it has written already: the buffer would never become full. */
struct limefs_write_stream {
    uint64_t begin, next, bytes;    /* bytes: number written so far, in large writes */
    struct limefs_range_set direct; /* ranges that were written without a buffer */
};

/* Gathers or writes n bytes for offset `at` of the container. Returns 1, -errno, or 0 without a
 * job: the caller must write the bytes. The caller holds the writer's lock shared. */
int limefs_write_buffers_add(struct limefs *, struct limefs_written *,
                             struct limefs_write_stream *, const char *buf, size_t n,
                             uint64_t at);

/* Waits until all gathered bytes of [from, to) are written to the container, but not synced.
 * The caller holds the writer's lock, shared or not. Returns -errno if a gathered write to the
 * container has failed since the latest call that returned an error; else 0. */
int limefs_write_buffers_flush(struct limefs *, struct limefs_written *, uint64_t from,
                               uint64_t to);

/* Flushes all gathered bytes and makes the ranks sync. The caller must then call fsync(), for
 * data that the daemon and ranks on this host wrote. Returns 0 or -errno; -EIO also means that
 * data which ranks on other hosts wrote may be lost. */
int limefs_write_buffers_sync(struct limefs *, struct limefs_written *);

/* Notes that a new file has replaced the container, so that the job opens the new file before
 * its next write. The caller has synced all data, and holds the writer's lock exclusively. */
void limefs_job_container_replaced(struct limefs *, const struct limefs_snapshot *);

#endif
