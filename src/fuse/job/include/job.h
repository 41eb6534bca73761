/*
 * job.h - connect the daemon to an I/O job, whose MPI processes (ranks) read and write
 * containers for the daemon: start or find the job, watch it, reconnect.
 *
 * One thread owns the connection. It starts a job (ranks=N) or looks for one (job=PATH), passes
 * the job a new window (shared memory, limejob.h), and receives the job's replies. If the job
 * ends or does not answer in time, the thread wakes the waiting readers, which then read
 * locally. It drops the connection and the window, pauses, and starts again with a new window.
 */
#ifndef LIMEFS_JOB_H
#define LIMEFS_JOB_H

#include "prefetch.h"
#include "limefs.h"
#include "limeildg.h"

#include <sys/uio.h>

struct limefs_job; /* fs->job; NULL without ranks= or job= */

/* Starts the connection's thread. The process must be a daemon already. Returns 0 or -errno. */
int limefs_job_start(struct limefs *);
void limefs_job_begin_stop(struct limefs *); /* ends limefs_job_wait_start() */
void limefs_job_stop(struct limefs *); /* ends the thread and its job, and frees fs->job */

/* Waits until the job serves or has failed to start: with ranks=, at most 0.1 s; with
 * job_required, until it is known. The caller calls this before it switches the log to syslog,
 * so the terminal shows an early failure. Returns false if a required job does not serve. */
bool limefs_job_wait_start(struct limefs *);

/* Bytes [at, at + n) of a container. They are in a record whose data is at [begin, end). */
struct limefs_read_range {
    struct limefs_snapshot *snap;
    uint64_t begin, end, at;
    size_t n;
    uint64_t layout; /* limefs_written.layout when begin and end were found; 0: no writer */
};

struct limefs_read_req limefs_read_req_for(const struct limefs_read_range *);

/* Finds the range in the window; may wait until the job has read it. Makes the chunks point to
 * its bytes, and returns the number of chunks; 0: the caller must read from the container. The
 * caller must release the chunks soon, because their slots are not reused before that. */
int limefs_job_read(struct limefs *, const struct limefs_read_range *, struct limefs_chunks *);
void limefs_job_release(struct limefs *, struct limefs_chunks *);

/* Drops all bytes of the container from the window. Chunks that a caller has not yet released
 * become stale: limefs_job_is_stale() is true for them. */
void limefs_job_invalidate(struct limefs *, const struct limefs_snapshot *);
bool limefs_job_is_stale(struct limefs *, const struct limefs_chunks *);

/* Begin and end a change of bytes [from, to) of a container that this mount writes to. The
 * caller owns the struct and must not move it between the two calls. moves: the change may move
 * or resize a record; if it is true, the caller must hold the writer's lock exclusively. */
void limefs_change_begin(struct limefs *, struct limefs_snapshot *, struct limefs_change *,
                         uint64_t from, uint64_t to, bool moves);
void limefs_change_end(struct limefs *, struct limefs_snapshot *, struct limefs_change *);

/* Notes a change of the container's headers or times. (Changes of data need begin and end.) */
void limefs_change_note(struct limefs *, struct limefs_snapshot *);

/* Stores the path of a snapshot's container. Its first *root bytes are the path of the mounted
 * directory, or of the directory that holds the mounted container; only the administrator can
 * change what this part leads to. Returns false if the path does not fit in cap bytes. */
bool limefs_job_container_path(struct limefs *, const struct limefs_snapshot *, char *path,
                               size_t cap, size_t *root);

/* The extended attribute of the mount's root with the statistics; listxattr() omits it. */
#define LIMEFS_STATS_XATTR "user.limefs.stats"
enum { LIMEFS_STATS_BYTES = 32 * 1024 };

/* Formats the statistics as JSON. Returns the length, -ERANGE if it exceeds cap, or -ENOMEM. */
int limefs_job_format_stats(struct limefs *, char *buf, size_t cap);

#endif
