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

#include "forward.h"
#include "limefs.h"
#include "limeildg.h"

#include <sys/uio.h>

struct limefs_job; /* fs->job; NULL without ranks= or job= */

/* After the process has become a daemon. 0 or -errno. */
int limefs_job_start(struct limefs *);
void limefs_job_stop(struct limefs *);

/* Waits for at most 0.1 s until a job that this mount starts serves or has failed, so that the
 * failure is logged while the log is still the terminal. */
void limefs_job_watch_start(struct limefs *);

/* Bytes [at, at + n) of a container, in a record whose data are [begin, end) of it. */
struct limefs_range {
    struct limefs_view *view;
    uint64_t begin, end, at;
    size_t n;
    uint64_t shape; /* of the view's writer, if it has one, when that was so */
};

/* A request for the range, now. */
struct limefs_want limefs_want_of(const struct limefs_range *);

/* Finds the range in the window: fills the pieces, which are released soon, and returns how
 * many there are; 0: read it locally. */
int limefs_job_read(struct limefs *, const struct limefs_range *, struct limefs_pieces *);
void limefs_job_release(struct limefs *, struct limefs_pieces *);

/* What was fetched of this container is out of date: of that nothing is found any more, and
 * what somebody still holds of it is stale. */
void limefs_job_drop(struct limefs *, const struct limefs_view *);
bool limefs_job_is_stale(struct limefs *, const struct limefs_pieces *);

/* Around whatever this mount changes in the container of a view that it writes to, from byte
 * `from` on and before `to`. `moves`: a record may be elsewhere then, or of another length; the
 * writer's lock is held alone. */
void limefs_job_change(struct limefs *, struct limefs_view *, struct limefs_change *,
                       uint64_t from, uint64_t to, bool moves);
void limefs_job_changed(struct limefs *, struct limefs_view *, struct limefs_change *);

/* After a change of no record's bytes: of headers, or of the container's times alone. */
void limefs_job_touched(struct limefs *, struct limefs_view *);

/* The path of a view's container, and how many bytes of it name a folder that only the
 * administrator changes: what is mounted, or its folder. False: it is longer than cap. */
bool limefs_job_name(struct limefs *, const struct limefs_view *, char *path, size_t cap,
                     size_t *root);

/* The attribute of the mount's root that shows them; it is not listed, as it is not the
 * container's. */
#define LIMEFS_STATS "user.limefs.stats"

/* The statistics as JSON; its length, or -ERANGE if it is longer than cap. */
int limefs_job_stats(struct limefs *, char *buf, size_t cap);

#endif
