/*
 * job.h - the daemon's connection to an I/O job, whose MPI processes (ranks) read and write
 * containers for it: start or find the job, watch it, reconnect.
 *
 * One thread owns the connection. It starts a job (ranks=N) or looks for one (job=PATH), passes
 * it a new window (memory that both share, limejob.h), and receives the replies. If the job
 * ends or does not answer in time, the thread drops the connection and the window, and tries
 * again after a pause. Readers that waited for the job then read locally at once.
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
void limefs_job_stop(struct limefs *); /* ends the thread and its job, and frees fs->job */

/* With ranks=, waits at most 0.1 s until the job serves or has failed to start. An early
 * failure is then logged before the caller switches the log from the terminal to syslog. */
void limefs_job_wait_start(struct limefs *);

/* Bytes [at, at + n) of a container, in a record with data [begin, end). */
struct limefs_read_range {
    struct limefs_snapshot *snap;
    uint64_t begin, end, at;
    size_t n;
    uint64_t layout; /* limefs_written.layout when the record was located; 0: no writer */
};

struct limefs_read_req limefs_read_req_for(const struct limefs_read_range *);

/* Gets the range from the window, and may wait until the job has read it. Fills the chunks and
 * returns their number; 0: the caller must read the range from the container. The caller must
 * soon release the chunks, because until then their slots cannot be reused. */
int limefs_job_read(struct limefs *, const struct limefs_read_range *, struct limefs_chunks *);
void limefs_job_release(struct limefs *, struct limefs_chunks *);

/* Drops all bytes of the container from the window. Chunks that a caller has not yet released
 * become stale: limefs_job_is_stale() is true for them. */
void limefs_job_invalidate(struct limefs *, const struct limefs_snapshot *);
bool limefs_job_is_stale(struct limefs *, const struct limefs_chunks *);

/* Begin and end a change of bytes [from, to) of a container that this mount writes to. The
 * caller owns the struct, which must not move in between. `moves`: a record may move or change
 * its length; the caller then holds the writer's lock exclusively. */
void limefs_change_begin(struct limefs *, struct limefs_snapshot *, struct limefs_change *,
                         uint64_t from, uint64_t to, bool moves);
void limefs_change_end(struct limefs *, struct limefs_snapshot *, struct limefs_change *);

/* Call this after a change of headers or of the container's times, but not of record data. */
void limefs_change_note(struct limefs *, struct limefs_snapshot *);

/* Stores the path of a snapshot's container. Its first *root bytes are the mounted directory,
 * or the directory of the mounted container: the part of the path that only the administrator
 * can change. Returns false if path has not enough room. */
bool limefs_job_container_path(struct limefs *, const struct limefs_snapshot *, char *path,
                               size_t cap, size_t *root);

/* The extended attribute of the mount's root with the statistics; listxattr() omits it. */
#define LIMEFS_STATS_XATTR "user.limefs.stats"

/* Formats the statistics as JSON. Returns the length, -ERANGE if it exceeds cap, or -ENOMEM. */
int limefs_job_format_stats(struct limefs *, char *buf, size_t cap);

#endif
