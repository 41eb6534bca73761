/* physics.c - plaquette and the like of a configuration, measured by the job's ranks */
#include "limejobphysics.h"
#include "link.h"

#include <stdlib.h>

enum {
    AT_ONCE = 2,         /* pieces under way */
    STEPS_MAX = 1 << 20, /* of a configuration: the sums of all are in memory */
    SLICES_A_RANK = 4,   /* each rank reads one more than its own */
};

/* Bytes of sites of a piece, for which other requests wait. */
static const uint64_t piece_bytes = 128 << 20;

struct measuring {
    struct limefs_work work; /* first: it leads here */
    struct limefs_physics_piece piece[AT_ONCE];
    struct limejob_physics what; /* what is asked for next */
    struct limefile_physics_part whole;
    uint64_t blocks, slices;            /* of a piece */
    struct limefile_physics_sums *sums; /* of all steps */
    struct limefile_physics_tally tally;
};

static uint64_t between(uint64_t n, uint64_t least, uint64_t most)
{
    return n > most ? most : n < least ? least : n;
}

/* Whole time slices, which the ranks share, if they are not too large; else a block for each.
 */
static void choose(struct measuring *m)
{
    const struct limefile_sites *sites = &m->what.sites;
    const uint64_t *extent = sites->extent;
    uint64_t slice = extent[0] * extent[1] * extent[2] * limefile_sites_bytes(sites);
    uint64_t ranks = m->work.job->greeting.ranks ? m->work.job->greeting.ranks : 1, wanted;
    if (piece_bytes / slice / ranks >= SLICES_A_RANK || m->whole.blocks < ranks) {
        m->blocks = between(m->whole.blocks, 1, LIMEJOB_STEPS_MAX);
        wanted = between(piece_bytes / slice, ranks, UINT64_MAX);
    } else {
        m->blocks = between(ranks, 1, LIMEJOB_STEPS_MAX);
        wanted = piece_bytes / (slice / m->whole.blocks * m->blocks + 1);
    }
    uint64_t most = LIMEJOB_STEPS_MAX / m->blocks;
    m->slices = between(wanted, 1, between(m->whole.slices, 1, most));
}

static void ask(struct limefs_work *work, struct limefs_piece *asked)
{
    struct measuring *m = (struct measuring *)work;
    struct limefs_physics_piece *piece = (struct limefs_physics_piece *)asked;
    struct limefile_physics_part *part = &m->what.part;
    part->blocks = between(m->blocks, 1, m->whole.blocks - part->block);
    part->slices = between(m->slices, 1, m->whole.slices - part->slice);
    piece->what = m->what;
    piece->all = m->sums;
    limefs_job_send_physics(work->job, piece, work->file);
    part->slice += part->slices;
    if (part->slice == m->whole.slices) {
        part->slice = 0;
        part->block += part->blocks;
    }
    work->asked_all = part->block >= m->whole.blocks;
}

static uint64_t take(struct limefs_work *work, const struct limefs_piece *asked)
{
    const struct limefs_physics_piece *piece = (const struct limefs_physics_piece *)asked;
    limefile_physics_merge(&((struct measuring *)work)->tally, &piece->tally);
    return 0; /* nobody sees how far it is */
}

/* What the job is asked; false: it is not for a job. */
static bool begin(struct measuring *m, const struct limefs *fs, const struct limefs_view *view,
                  const struct limefile_field *field)
{
    struct limefile_sites_field unused;
    struct limefile_sites *sites = &m->what.sites;
    if (limefile_sites_of_field(NULL, field, &unused, sites) != 0 ||
        limefile_physics_whole(sites, &m->whole) != 0 || view->guise || view->rewritten ||
        field->record.bytes < fs->options.forward_from ||
        m->whole.blocks > STEPS_MAX / m->whole.slices)
        return false;
    for (int d = 0; d < 4; d++)
        if (sites->extent[d] > UINT32_MAX)
            return false;
    m->what.offset = field->record.data_offset;
    m->sums = calloc(m->whole.blocks * m->whole.slices, sizeof *m->sums);
    return m->sums != NULL;
}

int limefs_job_physics(struct limefs *fs, const struct limefs_view *view,
                       const struct limefile_field *field, limefile_sum_progress_fn *progress,
                       void *context, struct limefile_physics *out)
{
    struct limefs_job *job = fs->job;
    struct measuring m = {.work = {.job = job, .ask = ask, .take = take}};
    if (!job || !begin(&m, fs, view, field))
        return 0;
    for (; m.work.at_once < AT_ONCE; m.work.at_once++)
        m.work.piece[m.work.at_once] = &m.piece[m.work.at_once].asked;
    limefs_lock(&job->lock);
    choose(&m);
    int done = limefs_job_compute(&m.work, view, field, progress, context);
    if (done > 0)
        job->measured_bytes += field->record.bytes;
    limefs_unlock(&job->lock);
    if (done > 0 && limefile_physics_conclude(&m.what.sites, 0, m.sums, &m.tally, out) != 0)
        done = 0;
    free(m.sums);
    return done;
}
