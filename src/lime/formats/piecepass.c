/*
 * piecepass.c - a pass over a lattice of which no planes fit into memory
 *
 * limefile_physics_measure() computes the figures from parts of the lattice. Sums and data need
 * no neighbours, but for openQCD's order, which is made from boxes that are read as they are
 * needed.
 */
#include "piecepass.h"
#include "gauge.h"
#include "imagekept.h"
#include "openqcd.h"
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Sites that are read at a time; openQCD's points are twice as large. */
enum { PIECE_SITES = 2048 };

struct piecepass {
    const struct limefile_gauge_pass *pass;
    bool points;           /* the pieces are of openQCD's points, not of sites */
    uint64_t units;        /* sites, or points, of the lattice */
    _Atomic uint64_t next; /* the first unit that no thread has */
    atomic_int err;        /* the first error */
    pthread_mutex_t lock;  /* for the progress and the sums */
    struct limefile_gauge_sums source, image;
};

static int report_progress(struct piecepass *s, uint64_t sites)
{
    const struct limefile_gauge_pass *pass = s->pass;
    if (!pass->progress)
        return 0;
    pthread_mutex_lock(&s->lock);
    bool goes_on = pass->progress(pass->context, sites);
    pthread_mutex_unlock(&s->lock);
    return goes_on ? 0 : -EINTR;
}

/* ---- pieces ---- */

static int write_piece(const struct piecepass *s, const void *data, uint64_t first,
                       uint64_t count, size_t unit, struct limefile_gauge_sums *sums)
{
    const struct limefile_gauge_pass *pass = s->pass;
    image_sum(pass->image, data, (size_t)count * unit, first * unit, sums);
    return pass->write
               ? pass->write(pass->context, data, (size_t)count * unit,
                             limefile_gauge_image_data_offset(pass->image) + first * unit)
               : 0;
}

/* `out` has room for the sites and, behind them, for what the image stores of them. */
static int do_sites(struct piecepass *s, uint64_t first, uint64_t count, unsigned char *out,
                    struct limefile_gauge_sums sums[2])
{
    const struct limefile_gauge_pass *pass = s->pass;
    unsigned char *stored = out + PIECE_SITES * limefile_sites_bytes(pass->sites);
    int err = pass->sites->read(pass->sites->context, first, count, out);
    if (!err && pass->source)
        gauge_sum(pass->source, out, first, count, &sums[0]);
    if (!err && pass->image && pass->image->format != LIMEFILE_GAUGE_OPENQCD) {
        image_encode(pass->image, out, count, stored);
        err = write_piece(s, stored, first, count, image_site_bytes(pass->image), &sums[1]);
    }
    return err ? err : report_progress(s, count);
}

static int do_points(struct piecepass *s, uint64_t first, uint64_t count, unsigned char *out,
                     struct limefile_gauge_sums sums[2])
{
    int err = openqcd_make(s->pass->sites, first, count, out);
    if (!err)
        err = write_piece(s, out, first, count, OPENQCD_POINT_BYTES, &sums[1]);
    return err ? err : report_progress(s, 0);
}

static void *run(void *context)
{
    struct piecepass *s = context;
    struct limefile_gauge_sums sums[2] = {{.nersc = 0}};
    unsigned char *out = malloc((size_t)PIECE_SITES * OPENQCD_POINT_BYTES);
    int err = out ? 0 : -ENOMEM;
    while (!err && !atomic_load(&s->err)) {
        uint64_t first = atomic_fetch_add(&s->next, PIECE_SITES);
        if (first >= s->units)
            break;
        uint64_t left = s->units - first, count = left < PIECE_SITES ? left : PIECE_SITES;
        err = s->points ? do_points(s, first, count, out, sums)
                        : do_sites(s, first, count, out, sums);
    }
    free(out);
    int none = 0;
    if (err)
        atomic_compare_exchange_strong(&s->err, &none, err);
    pthread_mutex_lock(&s->lock);
    gauge_merge_sums(&s->source, &sums[0]);
    gauge_merge_sums(&s->image, &sums[1]);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int run_threads(struct piecepass *s, bool points, uint64_t units)
{
    unsigned threads = s->pass->threads ? s->pass->threads : limefile_processors();
    s->points = points;
    s->units = units;
    atomic_store(&s->next, 0);
    limefile_run_threads(threads, run, s);
    return atomic_load(&s->err);
}

/* ---- all of it ---- */

/* Sites count when they are summed; here the caller can only stop. */
static bool goes_on(void *context, uint64_t bytes)
{
    (void)bytes;
    return report_progress(context, 0) == 0;
}

static int measure(struct piecepass *s, struct limefile_physics *out)
{
    const struct limefile_physics_options options = {
        .threads = s->pass->threads,
        .progress = goes_on,
        .context = s,
    };
    int err = limefile_physics_measure(s->pass->sites, &options, out);
    if (!err && s->pass->without_plaquette)
        out->plaquette = out->space = out->time = 0;
    return err;
}

int piecepass_run(const struct limefile_gauge_pass *pass, struct limefile_gauge_totals *out)
{
    struct piecepass s = {.pass = pass, .lock = PTHREAD_MUTEX_INITIALIZER};
    uint64_t sites = limefile_sites_count(pass->sites);
    *out = (struct limefile_gauge_totals){.source = {.nersc = 0}};
    int err = measure(&s, &out->physics);
    if (!err)
        err = run_threads(&s, false, sites);
    if (!err && pass->image && pass->image->format == LIMEFILE_GAUGE_OPENQCD)
        err = run_threads(&s, true, sites / 2);
    out->source = s.source;
    out->image = s.image;
    return err;
}
