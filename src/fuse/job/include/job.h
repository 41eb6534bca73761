/*
 * job.h - the daemon's connection to an I/O job: start or find the job, watch it, reconnect.
 *
 * One thread owns the connection. It starts a job (ranks=N) or looks for one (job=PATH), greets
 * it with a new window, and receives the replies. When the job has gone, or has not answered
 * for job_timeout, the thread drops the connection and the window, and tries again after a
 * while. Waiting readers then continue at once and read locally.
 */
#ifndef LIMEFS_JOB_H
#define LIMEFS_JOB_H

#include "prefetch.h"
#include "limefs.h"
#include "limeildg.h"

#include <sys/uio.h>

struct limefs_job; /* fs->job; NULL without ranks= or job= */

/* Starts the thread. Call it after the process has become a daemon. Returns 0 or -errno. */
int limefs_job_start(struct limefs *);
void limefs_job_stop(struct limefs *);

/* Waits at most 0.1 s until a job that this mount starts serves or has failed, so that the
 * failure is logged while the log is still the terminal. */
void limefs_job_wait_start(struct limefs *);

/* Bytes [at, at + n) of a container, in a record with data [begin, end). */
struct limefs_read_range {
    struct limefs_snapshot *snap;
    uint64_t begin, end, at;
    size_t n;
    uint64_t layout; /* the writer's, if there is one, when the record was located */
};

/* Returns a request for the range at the current time. */
struct limefs_read_req limefs_read_req_for(const struct limefs_read_range *);

/* Finds the range in the window. Fills the chunks and returns their number; 0: read the range
 * from the container. The caller must release the chunks soon: their slots cannot be reused
 * before. */
int limefs_job_read(struct limefs *, const struct limefs_read_range *, struct limefs_chunks *);
void limefs_job_release(struct limefs *, struct limefs_chunks *);

/* Invalidates what was fetched of this container: pieces that are still held become stale. */
void limefs_job_invalidate(struct limefs *, const struct limefs_snapshot *);
bool limefs_job_is_stale(struct limefs *, const struct limefs_chunks *);

/* Begin and end a change of bytes [from, to) of a container that this mount writes to. `moves`:
 * a record may move or change its length; the writer's lock is exclusive. */
void limefs_change_begin(struct limefs *, struct limefs_snapshot *, struct limefs_change *,
                         uint64_t from, uint64_t to, bool moves);
void limefs_change_end(struct limefs *, struct limefs_snapshot *, struct limefs_change *);

/* Call this after a change of headers or of the container's times, but not of record data. */
void limefs_change_note(struct limefs *, struct limefs_snapshot *);

/* Stores the path of a snapshot's container in path. The first *root bytes name a directory
 * that only the administrator changes: the mounted one, or that of the mounted container.
 * Returns false if the path is longer than cap. */
bool limefs_job_container_path(struct limefs *, const struct limefs_snapshot *, char *path,
                               size_t cap, size_t *root);

/* The attribute of the mount's root with the statistics; listxattr() omits it. */
#define LIMEFS_STATS_XATTR "user.limefs.stats"

/* Formats the statistics as JSON. Returns the length, -ERANGE if it exceeds cap, or -ENOMEM. */
int limefs_job_format_stats(struct limefs *, char *buf, size_t cap);

#endif
