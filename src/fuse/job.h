/*
 * job.h - the daemon's side of a job: found or started, watched, given up and taken up again.
 *
 * One thread keeps the connection: it starts a job (ranks=N) or looks for one (job=PATH), says
 * hello with a new window, takes the replies, and when the job has gone, or has not answered
 * for job_timeout, drops it with its window and tries again after a while. Readers that wait
 * are let go at once and read locally.
 */
#ifndef LIMEFS_JOB_H
#define LIMEFS_JOB_H

#include "limefs.h"

#include <sys/uio.h>

struct limefs_job; /* fs->job; NULL without ranks= or job= */
struct limefs_file;

/* After the process has become a daemon. 0 or -errno. */
int limefs_job_start(struct limefs *);
void limefs_job_stop(struct limefs *);

/* A large record is opened: the job may as well open its container. */
void limefs_job_prepare(struct limefs *, const struct limefs_file *);

/*
 * Bytes [at, at + n) of the file's container, out of the window: the pieces, and how many. 0:
 * read them locally. What was given is released by limefs_job_release(), soon.
 */
struct limefs_pieces {
    int count;
    int slot[2];
    struct iovec iov[2];
};

int limefs_job_read(struct limefs *, const struct limefs_file *, uint64_t at, size_t n,
                    struct limefs_pieces *);
void limefs_job_release(struct limefs *, struct limefs_pieces *);

/* What was fetched of this container is out of date: of that nothing is found any more, and
 * what somebody still holds of it is stale. */
void limefs_job_drop(struct limefs *, const struct limefs_view *);
bool limefs_job_is_stale(struct limefs *, const struct limefs_pieces *);

/* The attribute of the mount's root that shows them; it is not listed, as it is not the
 * container's. */
#define LIMEFS_STATS "user.limefs.stats"

/* The statistics as JSON; its length, or -ERANGE if it is longer than cap. */
int limefs_job_stats(struct limefs *, char *buf, size_t cap);

#endif
