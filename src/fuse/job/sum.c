/* sum.c - the checksum of a record, taken by the job's ranks */
#include "link.h"

enum {
    AT_ONCE = 4,            /* pieces under way */
    PIECE_BYTES = 32 << 20, /* other requests wait for one of them, at most */
};

struct summing {
    struct limefs_work work; /* first: it leads here */
    const struct limefile_field *field;
    uint64_t next; /* site that is asked for next */
    struct limefs_sum_piece piece[AT_ONCE];
    struct limefile_checksum *sum;
};

static void ask(struct limefs_work *work, struct limefs_piece *asked)
{
    struct summing *s = (struct summing *)work;
    struct limefs_sum_piece *piece = (struct limefs_sum_piece *)asked;
    const struct limefile_field *field = s->field;
    uint64_t sites = PIECE_BYTES / field->site_bytes, left = field->sites - s->next;
    if (sites > left)
        sites = left;
    piece->offset = field->record.data_offset + s->next * field->site_bytes;
    piece->bytes = sites * field->site_bytes;
    piece->site_bytes = field->site_bytes;
    piece->first = s->next;
    s->next += sites;
    work->asked_all = s->next == field->sites;
    limefs_job_send_sum(work->job, piece, work->file);
}

static uint64_t take(struct limefs_work *work, const struct limefs_piece *asked)
{
    const struct limefs_sum_piece *piece = (const struct limefs_sum_piece *)asked;
    struct limefile_checksum *sum = ((struct summing *)work)->sum;
    sum->suma ^= piece->sum.suma;
    sum->sumb ^= piece->sum.sumb;
    work->job->summed_bytes += piece->bytes;
    return piece->bytes;
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
    struct summing s = {
        .work = {.job = job, .ask = ask, .take = take, .asked_all = field->sites == 0},
        .field = field,
        .sum = sum,
    };
    for (; s.work.at_once < AT_ONCE; s.work.at_once++)
        s.work.piece[s.work.at_once] = &s.piece[s.work.at_once].asked;
    limefs_lock(&job->lock);
    int done = limefs_job_compute(&s.work, view, field, progress, context);
    limefs_unlock(&job->lock);
    return done;
}
