/* job_timeout.c - decide when a job takes too long to answer. Called with job->lock held. */
#include "job_internal.h"

#include <math.h>

/* Multiples of the time limit: for a SYNC, and for a request that the job leaves unanswered
 * while it answers others. */
static const double sync_factor = 12, alone_factor = 4;

/* Returns a request's time limit in seconds, which allows for reading an extent at 50 MB/s. */
static double get_time_limit(const struct limefs_job *job)
{
    return job->fs->options.job_timeout + (double)job->prefetch.extent / 50e6;
}

double limefs_job_lease_seconds(const struct limefs_job *job)
{
    return alone_factor * get_time_limit(job);
}

/* How long requests have waited for a reply, in seconds. */
struct waits {
    double now, sync; /* the current time; when the first unanswered SYNC was sent */
    double before;    /* the longest wait of a request that was sent before this SYNC */
    double behind;    /* the longest wait of this SYNC or of a request that was sent later */
};

static double first_sync_time(const struct limefs_job *job)
{
    double first = INFINITY;
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (!sync->done && sync->sent_at < first)
            first = sync->sent_at;
    return first;
}

/* Notes the wait of a request. Ranks execute requests in order. If this one was sent while they
 * were executing the latest SYNC, its wait begins only at the end of that SYNC. */
static void note_wait(const struct limefs_job *job, struct waits *waits, double sent_at)
{
    double *longest = sent_at < waits->sync ? &waits->before : &waits->behind;
    if (sent_at >= job->synced_from && sent_at < job->synced_to)
        sent_at = job->synced_to;
    if (waits->now - sent_at > *longest)
        *longest = waits->now - sent_at;
}

static void note_file_waits(const struct limefs_job *job, struct waits *waits)
{
    for (const struct limefs_job_file *file = job->files;
         file < job->files + LIMEFS_JOB_FILES_MAX; file++)
        if (file->state == LIMEFS_JOB_FILE_OPENING || file->state == LIMEFS_JOB_FILE_CLOSING)
            note_wait(job, waits, file->last_used);
}

static void note_data_waits(const struct limefs_job *job, struct waits *waits)
{
    for (unsigned i = 0; i < job->prefetch.slots; i++)
        if (job->prefetch.slot[i].state == LIMEFS_EXTENT_LOADING)
            note_wait(job, waits, job->load_sent[i]);
    for (unsigned i = 0; i < job->buffer_count; i++)
        if (job->buffers[i].state == LIMEFS_BUFFER_SENT)
            note_wait(job, waits, job->buffers[i].last_used);
}

static bool is_too_long(double wait, double silence, double limit)
{
    return (wait > limit && silence > limit) || wait > alone_factor * limit;
}

bool limefs_job_is_stalled(const struct limefs_job *job, double now)
{
    struct waits waits = {.now = now, .sync = first_sync_time(job)};
    double limit = get_time_limit(job), silence = now - job->last_reply;
    note_file_waits(job, &waits);
    note_data_waits(job, &waits);
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (!sync->done)
            note_wait(job, &waits, sync->sent_at);
    return is_too_long(waits.before, silence, limit) ||
           is_too_long(waits.behind, silence, sync_factor * limit);
}
