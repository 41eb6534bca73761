/* sum.c - have the job's ranks take the checksum of a record, in pieces, a few at a time */
#include "link.h"

#include <errno.h>

enum {
    AT_ONCE = 4,            /* pieces under way */
    PIECE_BYTES = 32 << 20, /* other requests wait for one of them, at most */
};

struct summing {
    struct limefs_job *job;
    const struct limefile_field *field;
    uint64_t connection;
    struct limefs_job_file *file;
    uint64_t next; /* site that is asked for next */
    struct limefs_piece piece[AT_ONCE];
    unsigned under_way;
    struct limefile_checksum *sum;
};

static bool goes_on(const struct summing *s)
{
    const struct limefs_job *job = s->job;
    return job->state == LIMEFS_JOB_SERVING && !job->broken &&
           job->connections == s->connection;
}

/* The job has the container open, with the record as it is now; it is soon done, or never. */
static struct limefs_job_file *wait_for_file(const struct summing *s,
                                             const struct limefs_view *view)
{
    struct limefs_job *job = s->job;
    uint64_t from = s->field->record.data_offset, to = from + s->field->record.bytes;
    struct limefs_job_file *file;
    while (goes_on(s) && (file = limefs_job_file_of(job, view))) {
        if (limefs_job_file_has(job, file, view, from, to))
            return file;
        if (file->state != LIMEFS_JOB_FILE_OPENING && file->state != LIMEFS_JOB_FILE_CLOSING)
            return NULL;
        limefs_wait(&job->changed, &job->lock);
    }
    return NULL;
}

/* A place for the next piece. */
static struct limefs_piece *free_piece(struct summing *s)
{
    if (s->next == s->field->sites ||
        s->job->in_flight >= LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX / 2)
        return NULL;
    for (unsigned i = 0; i < AT_ONCE; i++)
        if (!s->piece[i].used)
            return &s->piece[i];
    return NULL;
}

static void ask(struct summing *s, struct limefs_piece *piece)
{
    struct limefs_job *job = s->job;
    const struct limefile_field *field = s->field;
    uint64_t sites = PIECE_BYTES / field->site_bytes, left = field->sites - s->next;
    if (sites > left)
        sites = left;
    *piece = (struct limefs_piece){
        .next = job->pieces,
        .used = true,
        .since = limefs_seconds(),
        .offset = field->record.data_offset + s->next * field->site_bytes,
        .bytes = sites * field->site_bytes,
        .site_bytes = field->site_bytes,
        .first = s->next,
    };
    job->pieces = piece;
    s->next += sites;
    s->under_way++;
    s->file->loads++;
    s->file->since = piece->since;
    limefs_job_send_sum(job, piece, s->file);
}

static void unlink_piece(struct limefs_job *job, const struct limefs_piece *piece)
{
    struct limefs_piece **at = &job->pieces;
    while (*at && *at != piece)
        at = &(*at)->next;
    if (*at)
        *at = piece->next;
}

/* Takes the pieces that have come: their number and bytes, or -errno if one has failed. */
static int collect(struct summing *s, uint64_t *bytes)
{
    int taken = 0, err = 0;
    *bytes = 0;
    for (struct limefs_piece *piece = s->piece; piece < s->piece + AT_ONCE; piece++) {
        if (!piece->used || !piece->done)
            continue;
        unlink_piece(s->job, piece);
        s->under_way--;
        piece->used = false;
        taken++;
        if (piece->code) {
            err = piece->code;
            continue;
        }
        s->sum->suma ^= piece->sum.suma;
        s->sum->sumb ^= piece->sum.sumb;
        s->job->summed_bytes += piece->bytes;
        *bytes += piece->bytes;
    }
    return err ? err : taken;
}

static int sum_all(struct summing *s, limefile_sum_progress_fn *progress, void *context)
{
    struct limefs_job *job = s->job;
    uint64_t bytes;
    while (goes_on(s) && (s->next < s->field->sites || s->under_way)) {
        for (struct limefs_piece *piece; (piece = free_piece(s));)
            ask(s, piece);
        int taken = collect(s, &bytes);
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
    return goes_on(s);
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
    struct summing s = {.job = job, .field = field, .sum = sum};
    limefs_lock(&job->lock);
    s.connection = job->connections;
    s.file = wait_for_file(&s, view);
    int done = s.file ? sum_all(&s, progress, context) : 0;
    /* Replies to pieces that are left behind would be written into what is there by then. */
    for (unsigned i = 0; i < AT_ONCE; i++)
        if (s.piece[i].used)
            unlink_piece(job, &s.piece[i]);
    limefs_unlock(&job->lock);
    return done;
}
