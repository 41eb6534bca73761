/*
 * write_buffers.h - write through the job: gather writes into extents in the second half of the
 * window.
 *
 * A stream of writes fills write buffers. Each holds a range of the container that ends at or
 * before the next multiple of an extent. A full buffer goes to the job, whose ranks write it
 * together; several are being written while the next ones are filled. If the job has gone or
 * failed, the daemon writes the bytes from the buffer. So a buffer is reused only after its
 * bytes are in the container.
 */
#ifndef LIMEFS_WRITE_BUFFERS_H
#define LIMEFS_WRITE_BUFFERS_H

#include "range_set.h"
#include "snapshot.h"

#include <stdatomic.h>

/* The part of a writer that the job's code uses. */
struct limefs_written {
    struct limefs_snapshot *snap;
    int fd;               /* the container, for local writes; guarded by the writer's lock */
    atomic_bool unsynced; /* data was written, locally or by ranks, and not synced */
    atomic_int syncing;   /* syncs under way, which may have cleared `unsynced` */

    /* Guarded by the job's lock: */
    int write_error; /* of a gathered write, not yet reported */
    double changed;  /* time of the container's last change */
    uint64_t layout; /* counts records moved or cut; changed with an exclusive writer lock */
};

/* A stream of sequential writes to [begin, next) of the container. A write buffer with bytes
 * before `begin`, or in ranges written directly (`direct`), would never become full. */
struct limefs_write_stream {
    uint64_t begin, next, bytes;
    struct limefs_range_set direct;
};

/* Adds n bytes for offset `at` of the container. Returns 1 if they were gathered or written; 0
 * without a job: the caller writes them; < 0: an error. The writer's lock is held, shared. */
int limefs_write_buffers_add(struct limefs *, struct limefs_written *,
                             struct limefs_write_stream *, const char *buf, size_t n,
                             uint64_t at);

/* Waits until all gathered bytes of [from, to) are in the container, as far as others can see.
 * The writer's lock is held, in any mode. Returns 0, or once an error of any gathered write. */
int limefs_write_buffers_flush(struct limefs *, struct limefs_written *, uint64_t from,
                               uint64_t to);

/* Flushes everything and makes the ranks sync. The caller must call fsync() afterwards. */
int limefs_write_buffers_sync(struct limefs *, struct limefs_written *);

/* Notes that the container is another file from now on, so that the job opens that one for
 * writing (job_files.c). All was synced before; the writer's lock is held exclusively. */
void limefs_job_container_replaced(struct limefs *, const struct limefs_snapshot *);

#endif
