/* sync.c - what ranks have written is brought to the disk by them */
#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

enum {
    SYNCS_AT_ONCE = 8, /* a job has something else to do, too */
};

static bool is_still_open(const struct limefs_job *job, uint64_t connection)
{
    return job->state == LIMEFS_JOB_SERVING && !job->broken && job->connections == connection;
}

static bool has_room_to_sync(const struct limefs_job *job)
{
    unsigned under_way = 0;
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        under_way += !sync->done;
    return under_way < SYNCS_AT_ONCE && job->in_flight < LIMEJOB_IN_FLIGHT_MAX;
}

static void unlink_sync(struct limefs_job *job, const struct limefs_job_sync *sync)
{
    struct limefs_job_sync **at = &job->syncs;
    while (*at != sync)
        at = &(*at)->next;
    *at = sync->next;
    pthread_cond_broadcast(&job->changed); /* there is room for another one */
}

/* All ranks; waits until there is room for one more, and for the reply: true, and what it says.
 * The job may go before. */
static bool ask_to_sync(struct limefs_job *job, struct limefs_job_file *file,
                        uint64_t connection, int *code)
{
    while (is_still_open(job, connection) && !has_room_to_sync(job))
        limefs_wait(&job->changed, &job->lock);
    if (!is_still_open(job, connection))
        return false;
    struct limefs_job_sync sync = {.next = job->syncs,
                                   .view = file->view,
                                   .tag = ++job->sync_tag,
                                   .since = limefs_seconds()};
    /* cppcheck-suppress autoVariables ; it is taken out below */
    job->syncs = &sync;
    file->unsynced = false;
    limefs_job_send_sync(job, file, sync.tag);
    while (!sync.done && is_still_open(job, connection))
        limefs_wait(&job->changed, &job->lock);
    unlink_sync(job, &sync);
    *code = sync.code;
    return sync.done;
}

/* The same until it was done, or has failed: who is told that the job has too much to do asks
 * once more after another reply. */
static int sync_ranks(struct limefs_job *job, struct limefs_job_file *file, bool *elsewhere)
{
    uint64_t connection = job->connections;
    bool others = job->greeting.hosts > 1, done;
    int code = 0;
    file->syncs++; /* until then it stays open */
    file->loads++;
    while ((done = ask_to_sync(job, file, connection, &code)) && code == -EAGAIN &&
           is_still_open(job, connection)) {
        file->unsynced = true;
        if (job->in_flight > 0)
            limefs_wait(&job->changed, &job->lock);
    }
    if (is_still_open(job, connection)) {
        file->syncs--;
        file->loads--;
    }
    /* It may have gone before it was asked once more; or it is about to, and did nothing. */
    done = done && code != -EAGAIN && code != -ESHUTDOWN;
    /* What ranks of this host have written is in this host's hands. */
    *elsewhere = *elsewhere || (!done && others);
    return done ? code : 0;
}

int limefs_store_sync(struct limefs *fs, struct limefs_job_view *written)
{
    struct limefs_job *job = fs->job;
    int err = limefs_store_flush(fs, written, 0, UINT64_MAX);
    if (!job || job->parcel_count == 0)
        return err;
    limefs_lock(&job->lock);
    struct limefs_job_file *file = is_still_open(job, job->connections)
                                       ? limefs_job_file_written(job, written->view)
                                       : NULL;
    bool elsewhere = false;
    int met = 0;
    if (file && (file->unsynced || file->syncs))
        met = sync_ranks(job, file, &elsewhere);
    elsewhere = limefs_view_take_loss(fs, written->view) || elsewhere; /* once, by now */
    if (elsewhere)
        met = -EIO;
    limefs_unlock(&job->lock);
    if (met)
        limefs_log(LOG_ERR, "job: sync: %s",
                   elsewhere
                       ? "it has gone before ranks on other hosts had brought to the disk "
                         "what they had written"
                       : strerror(-met));
    return err ? err : met;
}
