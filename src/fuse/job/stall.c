/* stall.c - decide when a job takes too long to answer */
#include "link.h"

#include <math.h>

/* Multiples of the limit: for a SYNC, and for a request while others are answered. */
static const double sync_times = 12, alone_times = 4;

/* Seconds for one request. A job that reads less than 50 MB/s with all ranks is of no use. */
static double limit_of(const struct limefs_job *job)
{
    return job->fs->options.job_timeout + (double)job->forward.extent / 50e6;
}

double limefs_job_lease(const struct limefs_job *job)
{
    return alone_times * limit_of(job);
}

/* The longest waiting times: of requests before the first unanswered SYNC, and of that SYNC and
 * requests behind it, for which a disk may need time. All in seconds. */
struct waits {
    double now, sync;
    double before, behind;
};

static double first_sync(const struct limefs_job *job)
{
    double first = INFINITY;
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (!sync->done && sync->since < first)
            first = sync->since;
    return first;
}

/* Ranks execute requests in order: one behind a SYNC had its turn after the SYNC. */
static void note(const struct limefs_job *job, struct waits *waits, double since)
{
    double *longest = since < waits->sync ? &waits->before : &waits->behind;
    if (since >= job->synced_from && since < job->synced_to)
        since = job->synced_to;
    if (waits->now - since > *longest)
        *longest = waits->now - since;
}

static void note_files(const struct limefs_job *job, struct waits *waits)
{
    for (const struct limefs_job_file *file = job->files;
         file < job->files + LIMEFS_JOB_FILES_MAX; file++)
        if (file->state == LIMEFS_JOB_FILE_OPENING || file->state == LIMEFS_JOB_FILE_CLOSING)
            note(job, waits, file->since);
}

static void note_bytes(const struct limefs_job *job, struct waits *waits)
{
    for (unsigned i = 0; i < job->forward.slots; i++)
        if (job->forward.slot[i].state == LIMEFS_EXTENT_LOADING)
            note(job, waits, job->asked[i]);
    for (unsigned i = 0; i < job->parcel_count; i++)
        if (job->parcels[i].state == LIMEFS_PARCEL_SENT)
            note(job, waits, job->parcels[i].since);
}

static bool is_too_long(double wait, double silence, double limit)
{
    return (wait > limit && silence > limit) || wait > alone_times * limit;
}

bool limefs_job_is_stalled(const struct limefs_job *job, double now)
{
    struct waits waits = {.now = now, .sync = first_sync(job)};
    double limit = limit_of(job), silence = now - job->heard;
    note_files(job, &waits);
    note_bytes(job, &waits);
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (!sync->done)
            note(job, &waits, sync->since);
    return is_too_long(waits.before, silence, limit) ||
           is_too_long(waits.behind, silence, sync_times * limit);
}
