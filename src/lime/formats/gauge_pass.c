/* gauge_pass.c - read all sites: compute the sums of the stored data, the physics figures
 * and an image's data, and compare the results with the header
 *
 * In each step the threads read one time slice. In the same step they compute figures
 * (plaquettes, link trace and deviations from SU(3)) and the image's data from the two slices
 * that they read in the steps before: `before` and `now`. Plaquettes of `before` use links of
 * `now`; openQCD's points of `now` use links of `before`. So three slices are in memory. The
 * last slice is read in the first step, as the `before` of time 0, and again at the end. If
 * three slices need too much memory, the pass works on one block of z planes after another. A
 * block is read with the plane below it (its halo); the block and its halo are the window. */
#define _GNU_SOURCE
#include "gauge.h"
#include "threads.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SLICES = 3,
    READ_BYTES = 512 * 1024, /* bytes read at a time */
    OUT_BYTES = 1 << 20,
    THREADS_MAX = 256,
    MEMORY_DEFAULT = 512 << 20,
    MEMORY_MAX = 1536 << 20, /* bytes of all threads; one thread alone may use pass->memory */
};

/* Numbers of units (pieces of work for one thread) that threads have started in a step. */
struct started_units {
    uint64_t encodes, figures, loads;
    unsigned encoding; /* threads that encode now */
};

struct pass_state {
    const struct limefile_gauge_pass *pass;
    uint64_t extent[4], plane;   /* plane: sites of one z and t */
    size_t site;                 /* bytes */
    uint64_t block;              /* planes of a block; the last block may have fewer */
    bool halo;                   /* there are several blocks, each with a halo */
    bool is_openqcd;             /* the image is in openQCD's order */
    bool same_form;              /* the image stores sites in the form in which they are read */
    unsigned char *ring[SLICES]; /* buffers for slices (or windows), used in turn */
    struct started_units started[SLICES]; /* of recent steps; protected by `lock` */
    unsigned writers;        /* the most threads that may encode while there is other work */
    atomic_int err;          /* the first error; 0: none */
    _Atomic uint64_t failed; /* the step with this error; no step follows; UINT64_MAX: none */
    unsigned threads;
    pthread_mutex_t lock; /* run_workers() holds it until all threads have started */
    pthread_barrier_t barrier;
    struct limefile_physics_planes *figures;  /* of all threads that have ended */
    struct limefile_gauge_sums source, image; /* of all threads that have ended */
};

/* The work between two barriers. */
struct step {
    uint64_t number;
    uint64_t base, planes;       /* planes of the window; base: z of the first one */
    uint64_t load_t, now_t;      /* load_t: time that is read; now_t: time of `now` */
    bool loads, counts, encodes; /* counts: sums and progress include the sites that are read */
    unsigned char *load, *now, *before;
};

struct worker {
    struct pass_state *state;
    struct limefile_physics_planes *figures;
    struct limefile_gauge_sums source, image;
    unsigned char *out; /* OUT_BYTES for encoded data */
};

/* Records an error, unless there is one already. All threads then end after this step. */
static void fail_at_step(struct pass_state *w, int err, uint64_t step)
{
    uint64_t never = UINT64_MAX;
    int none = 0;
    atomic_compare_exchange_strong(&w->failed, &never, step);
    atomic_compare_exchange_strong(&w->err, &none, err);
}

/* ---- reading ---- */

/* Reads the window's sites [from, to), which must be consecutive in the lattice. */
static int load_sites(struct worker *me, const struct step *s, uint64_t from, uint64_t to)
{
    struct pass_state *w = me->state;
    const struct limefile_gauge_pass *pass = w->pass;
    uint64_t z = (s->base + from / w->plane) % w->extent[2];
    uint64_t first = (s->load_t * w->extent[2] + z) * w->plane + from % w->plane;
    unsigned char *at = s->load + from * w->site;
    int err = pass->sites->read(pass->sites->context, first, to - from, at);
    bool counts = s->counts && (!w->halo || from >= w->plane);
    if (!err && pass->source && counts)
        gauge_add_source(pass->source, at, first, to - from, &me->source);
    if (!err && pass->progress && counts) {
        pthread_mutex_lock(&w->lock);
        if (!pass->progress(pass->context, to - from))
            err = -EINTR;
        pthread_mutex_unlock(&w->lock);
    }
    return err;
}

/* Reads the window's sites [from, to). Reads those of the halo separately: they are not
 * counted, and the first block's halo, the lattice's last plane, is not consecutive with it. */
static int load_unit(struct worker *me, const struct step *s, uint64_t from, uint64_t to)
{
    uint64_t edge = me->state->halo ? me->state->plane : 0;
    int err = 0;
    if (from < edge && edge < to) {
        err = load_sites(me, s, from, edge);
        from = edge;
    }
    return err ? err : load_sites(me, s, from, to);
}

/* Returns the sites of one unit of reading; for an openQCD file, an even number of planes. */
static uint64_t sites_per_unit(const struct pass_state *w, const struct step *s)
{
    uint64_t n = READ_BYTES / w->site, all = s->planes * w->plane;
    if (w->pass->source && w->pass->source->format == LIMEFILE_GAUGE_OPENQCD) {
        n = (s->planes + 2 * w->threads - 1) / (2 * w->threads);
        n = (n + n % 2) * w->plane;
    }
    return n < all ? n : all;
}

/* ---- figures ---- */

/* Returns the planes of one unit of figures; few, so that all threads end a step together. */
static uint64_t slab_planes(const struct pass_state *w, const struct step *s)
{
    uint64_t planes = (s->planes - w->halo) / (2 * (uint64_t)w->threads);
    return planes < 1 ? 1 : planes < LIMEFILE_PHYSICS_PLANES ? planes : LIMEFILE_PHYSICS_PLANES;
}

/* Computes the figures of planes [from, to), for which it reads plane `to`, too. Plane 0 is the
 * first plane of the window or, without plaquettes, of the block. */
static void compute_figures(struct worker *me, const struct step *s, uint64_t from, uint64_t to)
{
    struct pass_state *w = me->state;
    bool no_plaquette = w->pass->without_plaquette;
    const unsigned char *slice = no_plaquette ? s->now : s->before;
    uint64_t slot = no_plaquette && w->halo ? from + 1 : from, t = s->now_t;
    if (!no_plaquette)
        t = t ? t - 1 : w->extent[3] - 1;
    size_t bytes = w->plane * w->site;
    const struct limefile_physics_slab slab = {
        .z = (s->base + slot) % w->extent[2],
        .t = t,
        .planes = to - from,
        .here = slice + slot * bytes,
        .above_z = slice + (slot + to - from) % s->planes * bytes,
        .above_t = no_plaquette ? NULL : s->now + slot * bytes,
    };
    limefile_physics_planes_add(me->figures, &slab);
}

/* ---- the image ---- */

/* Adds n bytes at `offset` of the image's data to its sums, and passes them to pass->write. */
static int write_image_data(struct worker *me, const void *data, size_t n, uint64_t offset)
{
    const struct limefile_gauge_pass *pass = me->state->pass;
    gauge_add_image(pass->image, data, n, offset, &me->image);
    return pass->write ? pass->write(pass->context, data, n,
                                     offset + limefile_gauge_image_data_offset(pass->image))
                       : 0;
}

/* Encodes the block's j-th plane, in the order in which the sites were read. */
static int encode_plane(struct worker *me, const struct step *s, uint64_t j)
{
    struct pass_state *w = me->state;
    uint64_t slot = w->halo ? j + 1 : j, z = (s->base + slot) % w->extent[2], n;
    uint64_t first = (s->now_t * w->extent[2] + z) * w->plane;
    const unsigned char *at = s->now + slot * w->plane * w->site;
    size_t stored = image_site_bytes(w->pass->image);
    int err = 0;
    for (uint64_t i = 0; !err && i < w->plane; i += n) {
        n = w->plane - i < OUT_BYTES / stored ? w->plane - i : OUT_BYTES / stored;
        if (!w->same_form)
            image_encode(w->pass->image, at + i * w->site, n, me->out);
        err = write_image_data(me, w->same_form ? at + i * w->site : me->out,
                               (size_t)n * stored, (first + i) * stored);
    }
    return err;
}

/* Encodes openQCD's columns at one x, as far as the columns are in the block. */
static int encode_columns(struct worker *me, const struct step *s, uint64_t x)
{
    struct pass_state *w = me->state;
    const uint64_t *l = w->extent;
    const struct openqcd_box box = {{0, 0, s->base}, {l[0], l[1], s->planes}};
    const struct openqcd_sites now = {s->now, box}, before = {s->before, box};
    uint64_t low = w->halo ? (s->base + 1) % l[2] : 0;
    uint64_t high = w->halo ? s->planes - 1 : l[2], n;
    uint64_t run = high == l[2] ? l[1] * high / 2 : high / 2;
    uint64_t first = (x + l[0] * s->now_t) * l[1] * l[2] / 2 + low / 2;
    uint64_t most = OUT_BYTES / OPENQCD_POINT_BYTES;
    int err = 0;
    for (uint64_t i = 0; !err && i < l[1] * high / 2; i += n) {
        uint64_t column = i / run, within = i % run;
        uint64_t at = first + column * l[2] / 2 + within;
        n = run - within < most ? run - within : most;
        openqcd_encode(l, w->pass->sites->precision, &now, &before, at, n, me->out);
        err = write_image_data(me, me->out, (size_t)n * OPENQCD_POINT_BYTES,
                               at * OPENQCD_POINT_BYTES);
    }
    return err;
}

/* ---- steps ---- */

enum unit_kind { UNIT_NONE, UNIT_ENCODE, UNIT_FIGURES, UNIT_LOAD };

/* Selects a thread's next unit and counts it as started. Encoding comes first, but while there
 * is other work only half of the threads encode: threads that write to one file wait for its
 * lock and for the disk. The other half computes figures in this time. */
static enum unit_kind select_unit(struct pass_state *w, const struct step *s, uint64_t *unit)
{
    uint64_t sites = sites_per_unit(w, s), planes = s->encodes ? s->planes - w->halo : 0;
    uint64_t loads = s->loads ? (s->planes * w->plane + sites - 1) / sites : 0;
    uint64_t units = !w->pass->image || !s->encodes ? 0 : w->is_openqcd ? w->extent[0] : planes;
    struct started_units *started = &w->started[s->number % SLICES];
    enum unit_kind kind = UNIT_NONE;
    pthread_mutex_lock(&w->lock);
    if (started->encodes < units && started->encoding < w->writers)
        kind = UNIT_ENCODE;
    else if (started->figures * slab_planes(w, s) < planes)
        kind = UNIT_FIGURES;
    else if (started->loads < loads)
        kind = UNIT_LOAD;
    else if (started->encodes < units)
        kind = UNIT_ENCODE;
    *unit = kind == UNIT_ENCODE    ? started->encodes++
            : kind == UNIT_FIGURES ? started->figures++
            : kind == UNIT_LOAD    ? started->loads++
                                   : 0;
    started->encoding += kind == UNIT_ENCODE;
    pthread_mutex_unlock(&w->lock);
    return kind;
}

static int encode_unit(struct worker *me, const struct step *s, uint64_t unit)
{
    struct pass_state *w = me->state;
    int err = w->is_openqcd ? encode_columns(me, s, unit) : encode_plane(me, s, unit);
    pthread_mutex_lock(&w->lock);
    w->started[s->number % SLICES].encoding--;
    pthread_mutex_unlock(&w->lock);
    return err;
}

static int run_unit(struct worker *me, const struct step *s, bool *more)
{
    struct pass_state *w = me->state;
    uint64_t unit;
    enum unit_kind kind = select_unit(w, s, &unit);
    *more = kind != UNIT_NONE;
    if (kind == UNIT_ENCODE)
        return encode_unit(me, s, unit);
    uint64_t n = kind == UNIT_LOAD ? sites_per_unit(w, s) : slab_planes(w, s), from = unit * n;
    uint64_t all = kind == UNIT_LOAD ? s->planes * w->plane : s->planes - w->halo;
    uint64_t to = from + n < all ? from + n : all;
    if (kind == UNIT_LOAD)
        return load_unit(me, s, from, to);
    if (kind == UNIT_FIGURES)
        compute_figures(me, s, from, to);
    return 0;
}

/* Does a thread's part of a step. Returns false if an error makes it the last step. */
static bool run_step(struct worker *me, const struct step *s)
{
    struct pass_state *w = me->state;
    bool more = true;
    while (more && !atomic_load(&w->err)) {
        int err = run_unit(me, s, &more);
        if (err)
            fail_at_step(w, err, s->number);
    }
    pthread_mutex_lock(&w->lock);
    w->started[(s->number + 1) % SLICES] = (struct started_units){0};
    pthread_mutex_unlock(&w->lock);
    pthread_barrier_wait(&w->barrier);
    return atomic_load(&w->failed) > s->number;
}

/* Runs the steps of a block. The first step reads the last slice, the next steps all slices
 * from time 0 on. A slice that a step reads is `now` in the next step, and then `before`. */
static bool run_block(struct worker *me, struct step *s)
{
    struct pass_state *w = me->state;
    uint64_t times = w->extent[3];
    for (uint64_t k = 0; k < times + 2; k++, s->number++) {
        s->load_t = k ? k - 1 : times - 1;
        s->now_t = k - 2;
        s->loads = k < times + 1 && (k || !w->pass->without_plaquette || w->is_openqcd);
        s->counts = k > 0;
        s->encodes = k > 1;
        s->load = w->ring[k % SLICES];
        s->now = w->ring[(k + 2) % SLICES];
        s->before = w->ring[(k + 1) % SLICES];
        if (!run_step(me, s))
            return false;
    }
    return true;
}

static void run_blocks(struct worker *me)
{
    struct pass_state *w = me->state;
    struct step s = {0};
    for (uint64_t z = 0; z < w->extent[2]; z += w->block) {
        uint64_t left = w->extent[2] - z;
        s.planes = (left < w->block ? left : w->block) + w->halo;
        s.base = !w->halo ? 0 : z ? z - 1 : w->extent[2] - 1;
        if (!run_block(me, &s))
            return;
    }
}

/* ---- threads ---- */

static void *run_pass(void *context)
{
    struct pass_state *w = context;
    struct worker me = {.state = w, .out = malloc(OUT_BYTES)};
    if (limefile_physics_planes_new(w->extent, w->pass->sites->precision, &me.figures) != 0 ||
        !me.out)
        fail_at_step(w, -ENOMEM, 0);
    /* Wait until run_workers() has started all threads. */
    pthread_mutex_lock(&w->lock);
    pthread_mutex_unlock(&w->lock);
    run_blocks(&me);
    free(me.out);
    pthread_mutex_lock(&w->lock);
    if (me.figures)
        limefile_physics_planes_merge(w->figures, me.figures);
    gauge_merge_sums(&w->source, &me.source);
    gauge_merge_sums(&w->image, &me.image);
    pthread_mutex_unlock(&w->lock);
    limefile_physics_planes_free(me.figures);
    return NULL;
}

static int run_workers(struct pass_state *w)
{
    pthread_t *others = calloc(w->threads, sizeof *others);
    unsigned started = 0;
    if (!others)
        return -ENOMEM;
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_lock(&w->lock);
    while (started + 1 < w->threads && pthread_create(&others[started], NULL, run_pass, w) == 0)
        started++;
    w->threads = started + 1;
    w->writers = w->threads > 1 ? w->threads / 2 : 1;
    pthread_barrier_init(&w->barrier, NULL, w->threads);
    pthread_mutex_unlock(&w->lock);
    run_pass(w);
    while (started)
        pthread_join(others[--started], NULL);
    pthread_barrier_destroy(&w->barrier);
    pthread_mutex_destroy(&w->lock);
    free(others);
    return atomic_load(&w->err);
}

/* ---- memory ---- */

/* Returns the bytes of three slices (or windows) and of all threads' figures; 0: too many. */
static uint64_t total_memory(const struct pass_state *w, uint64_t slice)
{
    uint64_t figures, slices, all;
    if (__builtin_mul_overflow(slice, SLICES, &slices) ||
        __builtin_mul_overflow(limefile_physics_planes_bytes(w->extent), w->threads + 1,
                               &figures) ||
        __builtin_add_overflow(figures, slices, &all))
        return 0;
    return all;
}

/* Selects whole slices, or blocks of an even number of planes. Reduces the number of threads if
 * their figures need too much. Allocates the slices. -ENOMEM: one thread needs too much. */
static int plan_memory(struct pass_state *w)
{
    const struct limefile_gauge_pass *pass = w->pass;
    uint64_t plane, slice, most = (pass->memory ? pass->memory : MEMORY_DEFAULT) / SLICES;
    if (__builtin_mul_overflow(w->plane, w->site, &plane) || plane > SIZE_MAX / 4)
        return -ENOMEM;
    uint64_t fit = most / plane;
    w->halo = fit < w->extent[2];
    w->block = !w->halo ? w->extent[2] : fit > 3 ? (fit - 1) / 2 * 2 : 2;
    if (__builtin_mul_overflow(plane, w->block + w->halo, &slice))
        return -ENOMEM;
    uint64_t all = total_memory(w, slice);
    for (; all > MEMORY_MAX && w->threads > 1; all = total_memory(w, slice))
        w->threads--;
    if (all == 0 || (all > MEMORY_MAX && all > pass->memory + pass->memory / 4))
        return -ENOMEM;
    for (int i = 0; i < SLICES; i++) {
        /* Use huge pages, because openQCD's order jumps between planes. */
        size_t bytes = (size_t)slice;
        w->ring[i] = bytes == slice ? limefile_buffer_new(&bytes) : NULL;
        if (!w->ring[i])
            return -ENOMEM;
    }
    return 0;
}

static void release_state(struct pass_state *w)
{
    limefile_physics_planes_free(w->figures);
    for (int i = 0; i < SLICES; i++)
        free(w->ring[i]);
}

int limefile_gauge_pass_run(const struct limefile_gauge_pass *pass,
                            struct limefile_gauge_totals *out)
{
    const struct limefile_gauge_image *image = pass->image;
    struct pass_state w = {
        .pass = pass, .site = limefile_sites_bytes(pass->sites), .failed = UINT64_MAX};
    memcpy(w.extent, pass->sites->extent, sizeof w.extent);
    w.plane = w.extent[0] * w.extent[1];
    w.is_openqcd = image && image->format == LIMEFILE_GAUGE_OPENQCD;
    w.same_form = image && !w.is_openqcd && image->form.rows == 3 && !image->form.little &&
                  image->form.precision == pass->sites->precision;
    w.threads = pass->threads ? pass->threads : limefile_processors();
    w.threads = w.threads < THREADS_MAX ? w.threads : THREADS_MAX;
    unsigned precision = pass->sites->precision;
    bool is_valid = gauge_count_sites(w.extent) && (precision == 32 || precision == 64);
    int err = is_valid ? plan_memory(&w) : -EINVAL;
    if (!err)
        err = limefile_physics_planes_new(w.extent, precision, &w.figures);
    if (!err)
        err = run_workers(&w);
    if (!err) {
        *out = (struct limefile_gauge_totals){.source = w.source, .image = w.image};
        limefile_physics_planes_result(w.figures, &out->physics);
    }
    release_state(&w);
    return err;
}

/* ---- comparing the data with the header ---- */

static bool has_matching_checksum(const struct limefile_gauge *g,
                                  const struct limefile_gauge_sums *computed)
{
    const struct limefile_gauge_sums *stated = &g->sums;
    return !g->has_checksum ||
           (computed->nersc == stated->nersc && computed->sum29 == stated->sum29 &&
            computed->sum31 == stated->sum31 && computed->scidac.suma == stated->scidac.suma &&
            computed->scidac.sumb == stated->scidac.sumb);
}

static void describe_checksums(const struct limefile_gauge *g,
                               const struct limefile_gauge_sums *computed,
                               char text[LIMEFILE_GAUGE_DIFFERENCE_MAX])
{
    static const char two[] =
        "checksum %08" PRIx32 " %08" PRIx32 ", not %08" PRIx32 " %08" PRIx32 " as in the %s";
    const struct limefile_gauge_sums *stated = &g->sums;
    size_t cap = LIMEFILE_GAUGE_DIFFERENCE_MAX;
    if (g->format == LIMEFILE_GAUGE_NERSC)
        snprintf(text, cap, "checksum %08" PRIx32 ", not %08" PRIx32 " as in the header",
                 computed->nersc, stated->nersc);
    else if (g->format == LIMEFILE_GAUGE_MILC)
        snprintf(text, cap, two, computed->sum29, computed->sum31, stated->sum29, stated->sum31,
                 "header");
    else
        snprintf(text, cap, two, computed->scidac.suma, computed->scidac.sumb,
                 stated->scidac.suma, stated->scidac.sumb, "scidac-checksum");
}

int limefile_gauge_stated(const struct limefile_gauge *g,
                          struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX])
{
    bool openqcd = g->format == LIMEFILE_GAUGE_OPENQCD;
    if (g->format == LIMEFILE_GAUGE_ILDG) {
        memcpy(out, g->priv->stated, sizeof g->priv->stated);
        return g->priv->stated_count;
    }
    if (!g->has_plaquette && !g->has_trace)
        return 0;
    int count =
        limefile_physics_stated_parse(g->text, strlen(g->text), openqcd ? 3 : 1, "header", out);
    for (int i = 0; openqcd && i < count; i++)
        out[i].tolerance = LIMEFILE_PHYSICS_TOLERANCE_OPENQCD;
    return count;
}

int limefile_gauge_compare(const struct limefile_gauge *g,
                           const struct limefile_gauge_totals *totals,
                           char text[LIMEFILE_GAUGE_DIFFERENCE_MAX])
{
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX];
    int count = limefile_gauge_stated(g, stated);
    *text = '\0';
    if (!has_matching_checksum(g, &totals->source)) {
        describe_checksums(g, &totals->source, text);
        return LIMEFILE_E_GAUGE_CHECKSUM;
    }
    for (int i = 0; i < count; i++) {
        const struct limefile_physics_stated *s = &stated[i];
        if (limefile_physics_agrees(&totals->physics, s, g->sites.precision))
            continue;
        snprintf(text, LIMEFILE_GAUGE_DIFFERENCE_MAX, "%s %.12g, not %s as in the %s",
                 limefile_physics_quantity_name(s->quantity),
                 limefile_physics_value(&totals->physics, s->quantity),
                 *s->text ? s->text : "empty", s->source);
        return s->quantity == LIMEFILE_PHYSICS_TRACE ? LIMEFILE_E_GAUGE_TRACE
                                                     : LIMEFILE_E_GAUGE_PLAQUETTE;
    }
    return 0;
}

const char *limefile_gauge_why_unverified(const struct limefile_gauge *g)
{
    if (g->has_checksum || g->has_plaquette || g->has_trace)
        return NULL;
    return "the header has no usable checksum";
}
