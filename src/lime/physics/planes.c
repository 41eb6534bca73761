/* planes.c - check planes of a time slice that are in memory, as during a conversion
 *
 * Some planes are processed together, row by row in y. Each of their rows, the next one in y,
 * those of the plane above in z and the rows of the next time are unpacked once; they fit into
 * a core's L2 cache. Sums are in fixed point, so their order does not matter. */
#include "limephysics.h"
#include "tile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_BYTES = 640 * 1024, /* limit for all unpacked rows */
    CACHE_LINE = 64,
};

/* The largest deviations and the bad links of some sites. They do not depend on the order in
 * which tiles are measured. */
struct tally {
    double unitarity, determinant;
    uint64_t nonfinite, bad_links, bad_sites;
    struct limefile_physics_bad first;
};

typedef __int128 figure;

static const double unit = 0x1p60; /* fixed point: 2^60 stands for 1 */

struct limefile_physics_planes {
    uint64_t extent[4];
    unsigned precision;
    double bound;
    uint64_t together; /* number of planes processed together */
    size_t row_tiles;
    double *rows; /* y and y + 1 of the planes and of the one above; one row of the next time */
    tile_measure_fn *measure;
    struct tally tally;
    figure space, time, trace;
    bool beyond; /* a sum is not finite, or too large for `figure` */
};

/* ---- bad links ---- */

static bool is_before(const struct limefile_physics_bad *x,
                      const struct limefile_physics_bad *y)
{
    if (y->wrong == LIMEFILE_PHYSICS_GOOD || x->wrong == LIMEFILE_PHYSICS_GOOD)
        return x->wrong != LIMEFILE_PHYSICS_GOOD;
    return x->site != y->site ? x->site < y->site : x->direction < y->direction;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static void merge_tally(struct tally *t, const struct tally *other)
{
    t->unitarity = larger(t->unitarity, other->unitarity);
    t->determinant = larger(t->determinant, other->determinant);
    t->nonfinite += other->nonfinite;
    t->bad_links += other->bad_links;
    t->bad_sites += other->bad_sites;
    if (is_before(&other->first, &t->first))
        t->first = other->first;
}

/* Measures a link. Returns true if it is bad and fills in the reason. */
static bool judge_link(struct tally *t, double bound, const double *u,
                       struct limefile_physics_bad *bad)
{
    double unitarity, determinant;
    int odd = limefile_physics_link(u, &unitarity, &determinant);
    bad->wrong = LIMEFILE_PHYSICS_GOOD;
    if (odd >= 0) {
        bad->wrong = isnan(u[odd]) ? LIMEFILE_PHYSICS_NAN : LIMEFILE_PHYSICS_INFINITE;
        bad->real = (unsigned)odd;
        for (int i = odd; i < LIMEFILE_LINK_REALS; i++)
            t->nonfinite += !isfinite(u[i]);
        return true;
    }
    t->unitarity = larger(t->unitarity, unitarity);
    t->determinant = larger(t->determinant, determinant);
    if (unitarity > bound) {
        bad->wrong = LIMEFILE_PHYSICS_UNITARITY;
        bad->deviation = unitarity;
    } else if (determinant > bound) {
        bad->wrong = LIMEFILE_PHYSICS_DETERMINANT;
        bad->deviation = determinant;
    }
    return bad->wrong != LIMEFILE_PHYSICS_GOOD;
}

/* Measures each link of a tile whose sum of deviations is too large or not finite. */
static void judge_tile(struct limefile_physics_planes *p, const double *tile, unsigned count,
                       const uint64_t at[4])
{
    const uint64_t *extent = p->extent;
    struct tally *t = &p->tally;
    uint64_t first = ((at[3] * extent[2] + at[2]) * extent[1] + at[1]) * extent[0] + at[0];
    for (unsigned i = 0; i < count; i++) {
        unsigned before = 0;
        for (unsigned mu = 0; mu < 4; mu++) {
            double u[LIMEFILE_LINK_REALS];
            struct limefile_physics_bad bad = {
                .site = first + i,
                .at = {at[0] + i, at[1], at[2], at[3]},
                .direction = mu,
            };
            for (unsigned c = 0; c < LIMEFILE_LINK_REALS; c++)
                u[c] = tile[(size_t)(mu * LIMEFILE_LINK_REALS + c) * TILE_PITCH + i];
            if (!judge_link(t, p->bound, u, &bad))
                continue;
            t->bad_links++;
            t->bad_sites += before++ == 0;
            if (is_before(&bad, &t->first))
                t->first = bad;
        }
    }
}

static void tally_tile(struct limefile_physics_planes *p, const double *tile, unsigned count,
                       const uint64_t at[4], const struct tile_sums *sums)
{
    struct tally *t = &p->tally;
    if (!sums->finite || sums->square > p->bound * p->bound) {
        judge_tile(p, tile, count, at);
        return;
    }
    t->unitarity = larger(t->unitarity, __builtin_sqrt(sums->unitarity));
    t->determinant = larger(t->determinant, __builtin_sqrt(sums->determinant));
}

/* ---- memory ---- */

static size_t row_reals(const uint64_t extent[4])
{
    return (size_t)((extent[0] - 1) / TILE_SITES + 1) * TILE_REALS;
}

static size_t rows_of(uint64_t together)
{
    return (size_t)(2 * together + 3);
}

static uint64_t choose(const uint64_t extent[4])
{
    uint64_t together = LIMEFILE_PHYSICS_PLANES;
    size_t row = row_reals(extent) * sizeof(double);
    while (together > 1 && row > ROWS_BYTES / rows_of(together))
        together--;
    return together;
}

size_t limefile_physics_planes_bytes(const uint64_t extent[4])
{
    size_t bytes;
    if (extent[0] == 0 || extent[0] > SIZE_MAX / 4096 ||
        __builtin_mul_overflow(row_reals(extent) * sizeof(double), rows_of(choose(extent)),
                               &bytes))
        return SIZE_MAX;
    return bytes;
}

int limefile_physics_planes_new(const uint64_t extent[4], unsigned precision,
                                struct limefile_physics_planes **out)
{
    size_t bytes = limefile_physics_planes_bytes(extent);
    struct limefile_physics_planes *p = calloc(1, sizeof *p);
    if (p && bytes < SIZE_MAX - CACHE_LINE)
        p->rows = aligned_alloc(CACHE_LINE, (bytes + CACHE_LINE) / CACHE_LINE * CACHE_LINE);
    if (!p || !p->rows) {
        free(p);
        return -ENOMEM;
    }
    memset(p->rows, 0, bytes);
    memcpy(p->extent, extent, sizeof p->extent);
    p->precision = precision;
    p->bound = precision == 32 ? LIMEFILE_PHYSICS_BOUND_SINGLE : LIMEFILE_PHYSICS_BOUND_DOUBLE;
    p->together = choose(extent);
    p->row_tiles = row_reals(extent) / TILE_REALS;
    p->measure = tile_measure_best();
    *out = p;
    return 0;
}

void limefile_physics_planes_free(struct limefile_physics_planes *p)
{
    if (p)
        free(p->rows);
    free(p);
}

/* ---- sums ---- */

/* If links are far from SU(3), the sum may be too large for `figure`. */
static void add(struct limefile_physics_planes *p, figure *sum, double value)
{
    if (!(fabs(value) < 0x1p64))
        p->beyond = true;
    else if (__builtin_add_overflow(*sum, (figure)(value * unit), sum))
        p->beyond = true;
}

static void merge(struct limefile_physics_planes *p, figure *sum, figure other)
{
    if (__builtin_add_overflow(*sum, other, sum))
        p->beyond = true;
}

void limefile_physics_planes_merge(struct limefile_physics_planes *p,
                                   const struct limefile_physics_planes *other)
{
    merge(p, &p->space, other->space);
    merge(p, &p->time, other->time);
    merge(p, &p->trace, other->trace);
    p->beyond |= other->beyond;
    merge_tally(&p->tally, &other->tally);
}

void limefile_physics_planes_tell(const struct limefile_physics_planes *p,
                                  struct limefile_physics *out)
{
    const struct tally *t = &p->tally;
    double sites = (double)p->extent[0] * (double)p->extent[1] * (double)p->extent[2] *
                   (double)p->extent[3];
    *out = (struct limefile_physics){
        .unitarity = t->unitarity,
        .determinant = t->determinant,
        .bound = p->bound,
        .nonfinite = t->nonfinite,
        .bad_links = t->bad_links,
        .bad_sites = t->bad_sites,
        .first = t->first,
        /* There are 3 planes and 3 colours. */
        .space = (double)p->space / unit / (9 * sites),
        .time = (double)p->time / unit / (9 * sites),
        .trace = (double)p->trace / unit / (12 * sites),
    };
    out->plaquette = (out->space + out->time) / 2;
    if (p->beyond || t->nonfinite)
        out->plaquette = out->space = out->time = out->trace = NAN;
}

/* ---- planes ---- */

/* Planes that are processed together. */
struct sweep {
    struct limefile_physics_planes *p;
    const struct limefile_physics_slab *slab;
    uint64_t first, planes; /* in the slab */
    double *here, *next, *then;
};

static size_t plane_bytes(const struct limefile_physics_planes *p)
{
    return (size_t)(p->extent[0] * p->extent[1]) * LIMEFILE_SITE_REALS * (p->precision / 8);
}

static double *row_at(const struct limefile_physics_planes *p, double *rows, uint64_t k)
{
    return rows + (size_t)k * p->row_tiles * TILE_REALS;
}

/* Unpacks the row y of a plane; the site after the last one is its first site. */
static void load_row(const struct limefile_physics_planes *p, const unsigned char *plane,
                     uint64_t y, double *tile)
{
    size_t site = (size_t)LIMEFILE_SITE_REALS * (p->precision / 8);
    const unsigned char *row = plane + (size_t)(y * p->extent[0]) * site, *at = row;
    uint64_t left = p->extent[0];
    for (; left > TILE_SITES; left -= TILE_SITES, tile += TILE_REALS, at += TILE_SITES * site)
        tile_unpack(tile, at, TILE_SITES, at + TILE_SITES * site, p->precision);
    tile_unpack(tile, at, (unsigned)left, row, p->precision);
}

/* Unpacks the row y of all planes and, if `above`, of the plane above them. */
static void load_rows(const struct sweep *s, uint64_t y, double *rows, bool above)
{
    const struct limefile_physics_planes *p = s->p;
    for (uint64_t k = 0; k < s->planes; k++)
        load_row(p, s->slab->here + (size_t)(s->first + k) * plane_bytes(p), y,
                 row_at(p, rows, k));
    if (!above)
        return;
    bool last = s->first + s->planes == s->slab->planes;
    const unsigned char *plane =
        last ? s->slab->above_z
             : s->slab->here + (size_t)(s->first + s->planes) * plane_bytes(p);
    load_row(p, plane, y, row_at(p, rows, s->planes));
}

static void measure_row(const struct sweep *s, uint64_t k, uint64_t y)
{
    struct limefile_physics_planes *p = s->p;
    const double *tile = row_at(p, s->here, k);
    const double *next[3] = {row_at(p, s->next, k), row_at(p, s->here, k + 1), s->then};
    uint64_t at[4] = {0, y, (s->slab->z + s->first + k) % p->extent[2], s->slab->t};
    for (uint64_t left = p->extent[0]; left; tile += TILE_REALS) {
        unsigned n = left < TILE_SITES ? (unsigned)left : TILE_SITES;
        struct tile_sums sums;
        p->measure(tile, s->slab->above_t ? next : NULL, n, &sums);
        tally_tile(p, tile, n, at, &sums);
        add(p, &p->space, sums.space);
        add(p, &p->time, sums.time);
        add(p, &p->trace, sums.trace);
        for (int i = 0; i < 3; i++)
            next[i] += TILE_REALS;
        at[0] += n;
        left -= n;
    }
}

/* Prefetches a row into the cache. */
static void fetch_row(const struct limefile_physics_planes *p, const unsigned char *plane,
                      uint64_t y)
{
    size_t bytes = (size_t)p->extent[0] * LIMEFILE_SITE_REALS * (p->precision / 8);
    const unsigned char *row = plane + (size_t)(y % p->extent[1]) * bytes;
    for (size_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch(row + i, 0, 2);
}

static void do_sweep(struct sweep *s)
{
    const struct limefile_physics_planes *p = s->p;
    bool loops = s->slab->above_t;
    load_rows(s, 0, s->here, loops);
    for (uint64_t y = 0; y < p->extent[1]; y++) {
        bool last = y + 1 == p->extent[1];
        if (loops || !last)
            load_rows(s, last ? 0 : y + 1, s->next, loops && !last);
        for (uint64_t k = 0; k < s->planes; k++) {
            size_t at = (size_t)(s->first + k) * plane_bytes(p);
            if (loops)
                load_row(p, s->slab->above_t + at, y, s->then);
            if (loops)
                fetch_row(p, s->slab->above_t + at, y + 1);
            fetch_row(p, s->slab->here + at, y + 2);
            measure_row(s, k, y);
        }
        double *rows = s->here;
        s->here = s->next;
        s->next = rows;
    }
}

void limefile_physics_planes_add(struct limefile_physics_planes *p,
                                 const struct limefile_physics_slab *slab)
{
    struct sweep s = {.p = p, .slab = slab};
    for (; s.first < slab->planes; s.first += s.planes) {
        uint64_t left = slab->planes - s.first;
        s.planes = left < p->together ? left : p->together;
        s.here = p->rows;
        s.next = row_at(p, s.here, p->together + 1);
        s.then = row_at(p, s.next, p->together + 1);
        do_sweep(&s);
    }
}
