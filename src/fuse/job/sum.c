/* sum.c - the checksum of a record, taken by the job's ranks */
#include "link.h"

#include <errno.h>

enum {
    AT_ONCE = 4,            /* pieces under way */
    PIECE_BYTES = 32 << 20, /* other requests wait for one of them, at most */
};

/* The pieces of one sum. */
struct work {
    struct limefs_job *job;
    uint64_t connection;
    const struct limefile_field *field;
    uint64_t next; /* site that is asked for next */
    unsigned under_way;
    struct limefs_sum_piece piece[AT_ONCE];
};

static bool goes_on(const struct work *work)
{
    const struct limefs_job *job = work->job;
    return job->state == LIMEFS_JOB_SERVING && !job->broken &&
           job->connections == work->connection;
}

struct limefs_job_file *limefs_job_file_wait(struct limefs_job *job,
                                             const struct limefs_view *view,
                                             const struct limefile_field *field)
{
    uint64_t from = field->record.data_offset, to = from + field->record.bytes;
    uint64_t connection = job->connections;
    struct limefs_job_file *file;
    while (job->state == LIMEFS_JOB_SERVING && !job->broken && job->connections == connection &&
           (file = limefs_job_file_of(job, view))) {
        if (limefs_job_file_has(job, file, view, from, to))
            return file;
        if (file->state != LIMEFS_JOB_FILE_OPENING && file->state != LIMEFS_JOB_FILE_CLOSING)
            return NULL;
        limefs_wait(&job->changed, &job->lock);
    }
    return NULL;
}

static void ask(struct work *work, struct limefs_sum_piece *piece, struct limefs_job_file *file)
{
    const struct limefile_field *field = work->field;
    uint64_t sites = PIECE_BYTES / field->site_bytes, left = field->sites - work->next;
    if (sites > left)
        sites = left;
    *piece = (struct limefs_sum_piece){
        .next = work->job->sums,
        .tag = ++work->job->sum_tag & LIMEFS_SUM_TAGS,
        .offset = field->record.data_offset + work->next * field->site_bytes,
        .bytes = sites * field->site_bytes,
        .site_bytes = field->site_bytes,
        .first = work->next,
        .since = limefs_seconds(),
    };
    work->job->sums = piece;
    work->next += sites;
    work->under_way++;
    file->loads++;
    file->since = piece->since;
    limefs_job_send_sum(work->job, piece, file);
}

static void unlink_piece(struct limefs_job *job, const struct limefs_sum_piece *piece)
{
    struct limefs_sum_piece **at = &job->sums;
    while (*at && *at != piece)
        at = &(*at)->next;
    if (*at)
        *at = piece->next;
}

/* A place for the next piece. */
static struct limefs_sum_piece *free_piece(struct work *work)
{
    const struct limefs_job *job = work->job;
    if (work->next >= work->field->sites ||
        job->in_flight >= LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX / 2)
        return NULL;
    for (int i = 0; i < AT_ONCE; i++)
        if (work->piece[i].bytes == 0)
            return &work->piece[i];
    return NULL;
}

/* Takes what has come. -errno: a piece has failed. *bytes: of all that is good. */
static int collect(struct work *work, struct limefile_checksum *sum, uint64_t *bytes)
{
    int err = 0;
    *bytes = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        struct limefs_sum_piece *piece = &work->piece[i];
        if (piece->bytes == 0 || !piece->done)
            continue;
        unlink_piece(work->job, piece);
        work->under_way--;
        err = piece->code ? piece->code : err;
        sum->suma ^= piece->sum.suma;
        sum->sumb ^= piece->sum.sumb;
        *bytes += piece->bytes;
        piece->bytes = 0;
    }
    return err;
}

/* 1: done; 0: the job cannot; -EINTR: stopped. With the lock held, which is let go for words.
 */
static int sum_all(struct work *work, struct limefs_job_file *file,
                   limefile_sum_progress_fn *progress, void *context,
                   struct limefile_checksum *sum)
{
    uint64_t bytes;
    while (goes_on(work) && (work->next < work->field->sites || work->under_way)) {
        for (struct limefs_sum_piece *piece; (piece = free_piece(work));)
            ask(work, piece, file);
        if (collect(work, sum, &bytes) != 0)
            return 0;
        if (bytes == 0) {
            limefs_wait(&work->job->changed, &work->job->lock);
            continue;
        }
        work->job->summed_bytes += bytes;
        limefs_unlock(&work->job->lock);
        bool on = progress(context, bytes);
        limefs_lock(&work->job->lock);
        if (!on)
            return -EINTR;
    }
    return goes_on(work);
}

/* Pieces are not left behind: replies to them would be written into what is there by then. */
static void withdraw(struct work *work)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (work->piece[i].bytes)
            unlink_piece(work->job, &work->piece[i]);
}

int limefs_job_sum(struct limefs *fs, const struct limefs_view *view,
                   const struct limefile_field *field, limefile_sum_progress_fn *progress,
                   void *context, struct limefile_checksum *sum)
{
    struct limefs_job *job = fs->job;
    *sum = (struct limefile_checksum){0};
    if (!job || field->boxed || field->site_bytes > LIMEJOB_SITE_MAX ||
        field->record.bytes < fs->options.forward_from || view->rewritten)
        return 0;
    limefs_lock(&job->lock);
    struct work work = {.job = job, .connection = job->connections, .field = field};
    struct limefs_job_file *file = limefs_job_file_wait(job, view, field);
    int done = file && goes_on(&work) ? sum_all(&work, file, progress, context, sum) : 0;
    withdraw(&work);
    limefs_unlock(&job->lock);
    return done;
}
