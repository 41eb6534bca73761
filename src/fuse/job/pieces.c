/* pieces.c - what the ranks compute of a record, asked for in pieces, a few at a time */
#include "link.h"

#include <errno.h>

static bool goes_on(const struct limefs_work *work)
{
    const struct limefs_job *job = work->job;
    return job->state == LIMEFS_JOB_SERVING && !job->broken &&
           job->connections == work->connection;
}

/* The job has the container open, with the record as it is now; it is soon done, or never. */
static struct limefs_job_file *wait_for_file(const struct limefs_work *work,
                                             const struct limefs_view *view,
                                             const struct limefile_field *field)
{
    struct limefs_job *job = work->job;
    uint64_t from = field->record.data_offset, to = from + field->record.bytes;
    struct limefs_job_file *file;
    while (goes_on(work) && (file = limefs_job_file_of(job, view))) {
        if (limefs_job_file_has(job, file, view, from, to))
            return file;
        if (file->state != LIMEFS_JOB_FILE_OPENING && file->state != LIMEFS_JOB_FILE_CLOSING)
            return NULL;
        limefs_wait(&job->changed, &job->lock);
    }
    return NULL;
}

/* A place for the next piece. */
static struct limefs_piece *free_piece(const struct limefs_work *work)
{
    if (work->asked_all || work->job->in_flight >= LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX / 2)
        return NULL;
    for (unsigned i = 0; i < work->at_once; i++)
        if (!work->piece[i]->used)
            return work->piece[i];
    return NULL;
}

static void ask(struct limefs_work *work, struct limefs_piece *piece)
{
    struct limefs_job *job = work->job;
    *piece =
        (struct limefs_piece){.next = job->pieces, .used = true, .since = limefs_seconds()};
    job->pieces = piece;
    work->under_way++;
    work->file->loads++;
    work->file->since = piece->since;
    work->ask(work, piece);
}

static void unlink_piece(struct limefs_job *job, const struct limefs_piece *piece)
{
    struct limefs_piece **at = &job->pieces;
    while (*at && *at != piece)
        at = &(*at)->next;
    if (*at)
        *at = piece->next;
}

/* Takes what has come: so many pieces, or -errno if one has failed. */
static int collect(struct limefs_work *work, uint64_t *bytes)
{
    int taken = 0, err = 0;
    *bytes = 0;
    for (unsigned i = 0; i < work->at_once; i++) {
        struct limefs_piece *piece = work->piece[i];
        if (!piece->used || !piece->done)
            continue;
        unlink_piece(work->job, piece);
        work->under_way--;
        piece->used = false;
        taken++;
        if (piece->code)
            err = piece->code;
        else
            *bytes += work->take(work, piece);
    }
    return err ? err : taken;
}

static int compute(struct limefs_work *work, limefile_sum_progress_fn *progress, void *context)
{
    struct limefs_job *job = work->job;
    uint64_t bytes;
    while (goes_on(work) && (!work->asked_all || work->under_way)) {
        for (struct limefs_piece *piece; (piece = free_piece(work));)
            ask(work, piece);
        int taken = collect(work, &bytes);
        if (taken < 0)
            return 0;
        if (taken == 0) {
            limefs_wait(&job->changed, &job->lock);
            continue;
        }
        limefs_unlock(&job->lock);
        bool on = progress(context, bytes);
        limefs_lock(&job->lock);
        if (!on)
            return -EINTR;
    }
    return goes_on(work);
}

int limefs_job_compute(struct limefs_work *work, const struct limefs_view *view,
                       const struct limefile_field *field, limefile_sum_progress_fn *progress,
                       void *context)
{
    work->connection = work->job->connections;
    work->file = wait_for_file(work, view, field);
    int done = work->file ? compute(work, progress, context) : 0;
    /* Replies to pieces that are left behind would be written into what is there by then. */
    for (unsigned i = 0; i < work->at_once; i++)
        if (work->piece[i]->used)
            unlink_piece(work->job, work->piece[i]);
    return done;
}
