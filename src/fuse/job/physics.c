/* physics.c - plaquette and the like of a configuration, measured by the job's ranks */
#include "limejobphysics.h"
#include "link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE = 2,         /* pieces under way */
    STEPS_MAX = 1 << 20, /* of a configuration: the sums of all are in memory */
    SLICES_A_RANK = 4,   /* each rank reads one more than its own */
};

/* Bytes of sites of a piece, for which other requests wait. */
static const uint64_t piece_bytes = 128 << 20;

/* The pieces of one configuration. */
struct work {
    struct limefs_job *job;
    uint64_t connection;
    struct limejob_physics what; /* what is asked for next */
    struct limefile_physics_part whole;
    uint64_t blocks, slices; /* of a piece */
    unsigned under_way;
    struct limefs_physics_piece piece[AT_ONCE];
    struct limefile_physics_sums *sums; /* of all steps */
    struct limefile_physics_tally tally;
};

static bool goes_on(const struct work *w)
{
    const struct limefs_job *job = w->job;
    return job->state == LIMEFS_JOB_SERVING && !job->broken &&
           job->connections == w->connection;
}

static uint64_t between(uint64_t n, uint64_t least, uint64_t most)
{
    return n > most ? most : n < least ? least : n;
}

/* Whole time slices, which the ranks share, if they are not too large; else a block for each.
 */
static void choose(struct work *w)
{
    const struct limefile_sites *sites = &w->what.sites;
    const uint64_t *extent = sites->extent;
    uint64_t slice = extent[0] * extent[1] * extent[2] * limefile_sites_bytes(sites);
    uint64_t ranks = w->job->greeting.ranks ? w->job->greeting.ranks : 1, wanted;
    if (piece_bytes / slice / ranks >= SLICES_A_RANK || w->whole.blocks < ranks) {
        w->blocks = between(w->whole.blocks, 1, LIMEJOB_STEPS_MAX);
        wanted = between(piece_bytes / slice, ranks, UINT64_MAX);
    } else {
        w->blocks = between(ranks, 1, LIMEJOB_STEPS_MAX);
        wanted = piece_bytes / (slice / w->whole.blocks * w->blocks + 1);
    }
    uint64_t most = LIMEJOB_STEPS_MAX / w->blocks;
    w->slices = between(wanted, 1, between(w->whole.slices, 1, most));
}

static void ask(struct work *w, struct limefs_physics_piece *piece,
                struct limefs_job_file *file)
{
    struct limefile_physics_part *part = &w->what.part;
    struct limefs_job *job = w->job;
    part->blocks = between(w->blocks, 1, w->whole.blocks - part->block);
    part->slices = between(w->slices, 1, w->whole.slices - part->slice);
    *piece = (struct limefs_physics_piece){
        .next = job->physics,
        .tag = ++job->sum_tag & LIMEFS_SUM_TAGS,
        .what = w->what,
        .all = w->sums,
        .used = true,
        .since = limefs_seconds(),
    };
    job->physics = piece;
    w->under_way++;
    file->loads++;
    file->since = piece->since;
    limefs_job_send_physics(job, piece, file);
    part->slice += part->slices;
    if (part->slice == w->whole.slices) {
        part->slice = 0;
        part->block += part->blocks;
    }
}

static void unlink_piece(struct limefs_job *job, const struct limefs_physics_piece *piece)
{
    struct limefs_physics_piece **at = &job->physics;
    while (*at && *at != piece)
        at = &(*at)->next;
    if (*at)
        *at = piece->next;
}

static struct limefs_physics_piece *free_piece(struct work *w)
{
    if (w->what.part.block >= w->whole.blocks ||
        w->job->in_flight >= LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX / 2)
        return NULL;
    for (int i = 0; i < AT_ONCE; i++)
        if (!w->piece[i].used)
            return &w->piece[i];
    return NULL;
}

/* Takes what has come. -errno: a piece has failed. *steps: how many are done. */
static int collect(struct work *w, uint64_t *steps)
{
    int err = 0;
    *steps = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        struct limefs_physics_piece *piece = &w->piece[i];
        if (!piece->used || !piece->done)
            continue;
        unlink_piece(w->job, piece);
        w->under_way--;
        piece->used = false;
        err = piece->code ? piece->code : err;
        *steps += piece->what.part.blocks * piece->what.part.slices;
        limefile_physics_merge(&w->tally, &piece->tally);
    }
    return err;
}

/* 1: done; 0: the job cannot; -EINTR: stopped. With the lock held, which is let go for words.
 */
static int measure_all(struct work *w, struct limefs_job_file *file,
                       limefile_sum_progress_fn *progress, void *context)
{
    uint64_t steps;
    while (goes_on(w) && (w->what.part.block < w->whole.blocks || w->under_way)) {
        for (struct limefs_physics_piece *piece; (piece = free_piece(w));)
            ask(w, piece, file);
        if (collect(w, &steps) != 0)
            return 0;
        if (steps == 0) {
            limefs_wait(&w->job->changed, &w->job->lock);
            continue;
        }
        limefs_unlock(&w->job->lock);
        bool on = progress(context, 0);
        limefs_lock(&w->job->lock);
        if (!on)
            return -EINTR;
    }
    return goes_on(w);
}

/* Replies to what is left are nobody's. */
static void withdraw(struct work *w)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (w->piece[i].used)
            unlink_piece(w->job, &w->piece[i]);
}

/* What the job is asked; false: it is not for a job. */
static bool begin(struct work *w, const struct limefs *fs, const struct limefs_view *view,
                  const struct limefile_field *field)
{
    struct limefile_sites_field unused;
    struct limefile_sites *sites = &w->what.sites;
    if (limefile_sites_of_field(NULL, field, &unused, sites) != 0 ||
        limefile_physics_whole(sites, &w->whole) != 0 || view->guise || view->rewritten ||
        field->record.bytes < fs->options.forward_from ||
        w->whole.blocks > STEPS_MAX / w->whole.slices)
        return false;
    for (int d = 0; d < 4; d++)
        if (sites->extent[d] > UINT32_MAX)
            return false;
    w->what.offset = field->record.data_offset;
    w->sums = calloc(w->whole.blocks * w->whole.slices, sizeof *w->sums);
    return w->sums != NULL;
}

int limefs_job_physics(struct limefs *fs, const struct limefs_view *view,
                       const struct limefile_field *field, limefile_sum_progress_fn *progress,
                       void *context, struct limefile_physics *out)
{
    struct limefs_job *job = fs->job;
    struct work w = {.job = job};
    if (!job || !begin(&w, fs, view, field))
        return 0;
    limefs_lock(&job->lock);
    w.connection = job->connections;
    choose(&w);
    struct limefs_job_file *file = limefs_job_file_wait(job, view, field);
    int done = file && goes_on(&w) ? measure_all(&w, file, progress, context) : 0;
    withdraw(&w);
    if (done > 0)
        job->measured_bytes += field->record.bytes;
    limefs_unlock(&job->lock);
    if (done > 0 && limefile_physics_conclude(&w.what.sites, 0, w.sums, &w.tally, out) != 0)
        done = 0;
    free(w.sums);
    return done;
}
