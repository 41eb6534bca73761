/* job_changes.c - track this mount's changes, and late writes of a lost job, in containers */
#include "job_internal.h"

#include <string.h>

void limefs_late_add(struct limefs_job *job, uint64_t snap_id, uint64_t from, uint64_t to,
                     double until)
{
    /* If the table is full, entry 0 is changed to cover all bytes of all snapshots. */
    if (job->late_count == LIMEFS_LATE_WRITES_MAX) {
        job->late_writes[0].snap_id = 0;
        if (job->late_writes[0].until < until)
            job->late_writes[0].until = until;
        return;
    }
    job->late_writes[job->late_count++] = (struct limefs_late_write){snap_id, from, to, until};
}

/* Removes expired entries. Returns until when late writes to the range are possible, or 0. */
static double get_deadline(struct limefs_job *job, uint64_t snap_id, uint64_t from, uint64_t to)
{
    double now = limefs_clock_seconds(), until = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < job->late_count; i++) {
        const struct limefs_late_write late = job->late_writes[i];
        if (late.until <= now)
            continue;
        job->late_writes[count++] = late;
        if (late.snap_id == 0 || (late.snap_id == snap_id && late.from < to && from < late.to))
            until = until < late.until ? late.until : until;
    }
    job->late_count = count;
    return until;
}

bool limefs_late_possible(struct limefs_job *job, uint64_t snap_id, uint64_t from, uint64_t to)
{
    return !job->stopping && get_deadline(job, snap_id, from, to) > 0;
}

void limefs_late_wait(struct limefs_job *job, uint64_t snap_id, uint64_t from, uint64_t to)
{
    double until;
    while ((until = get_deadline(job, snap_id, from, to)) > 0 && !job->stopping) {
        struct timespec time = limefs_clock_timespec(until);
        limefs_cond_wait_until(&job->changed, &job->lock, &time);
    }
}

void limefs_job_change_begin(struct limefs_job *job, struct limefs_change *change)
{
    if (limefs_prefetch_begin_change(&job->prefetch, change))
        pthread_cond_broadcast(&job->changed); /* makes waiting readers read locally */
}

void limefs_job_change_end(struct limefs_job *job, struct limefs_snapshot *snap,
                           struct limefs_change *change)
{
    limefs_prefetch_end_change(&job->prefetch, change);
    snap->job->changed = limefs_clock_seconds();
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++) {
        if (file->state == LIMEFS_JOB_FILE_NONE || file->snap_id != snap->id)
            continue;
        file->changed = true;
        if (change->from >= change->to)
            continue;
        if (file->changed_from >= file->changed_to) {
            file->changed_from = change->from;
            file->changed_to = change->to;
            continue;
        }
        if (change->from < file->changed_from)
            file->changed_from = change->from;
        if (change->to > file->changed_to)
            file->changed_to = change->to;
    }
}

void limefs_change_begin(struct limefs *fs, struct limefs_snapshot *snap,
                         struct limefs_change *change, uint64_t from, uint64_t to, bool moves)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    *change = (struct limefs_change){.snap_id = snap->id, .from = from, .to = to};
    limefs_lock(&job->lock);
    limefs_late_wait(job, snap->id, from, to);
    if (moves)
        snap->job->layout++;
    limefs_job_change_begin(job, change);
    limefs_unlock(&job->lock);
}

void limefs_change_end(struct limefs *fs, struct limefs_snapshot *snap,
                       struct limefs_change *change)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    limefs_lock(&job->lock);
    limefs_job_change_end(job, snap, change);
    limefs_unlock(&job->lock);
}

void limefs_change_note(struct limefs *fs, struct limefs_snapshot *snap)
{
    struct limefs_change nothing;
    limefs_change_begin(fs, snap, &nothing, 0, 0, false);
    limefs_change_end(fs, snap, &nothing);
}
