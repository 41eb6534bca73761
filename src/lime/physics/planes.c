/* planes.c - measure plaquettes, link traces and deviations from SU(3) on planes in memory
 *
 * A group of up to LIMEFILE_PHYSICS_PLANES planes is processed row by row in y. The rows y and
 * y + 1 of these planes and of the plane above them in z, and one row of the next time slice,
 * are unpacked into tiles that fit into a core's L2 cache. Sums are in fixed point, so the
 * order of the terms does not matter. */
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

/* Deviations and bad links of the sites measured so far. Sites can come in any order. */
struct tally {
    double unitarity, determinant;
    uint64_t nonfinite, bad_links, bad_sites;
    struct limefile_physics_bad_link first;
};

typedef __int128 fixed_sum;

static const double fixed_one = 0x1p60; /* fixed point: 2^60 stands for 1 */

struct limefile_physics_planes {
    uint64_t extent[4];
    unsigned precision;
    double bound;
    uint64_t planes_at_once; /* number of planes processed together */
    size_t row_tiles;        /* number of tiles for one row */
    double *rows; /* the unpacked rows (see the top of this file), of row_tiles tiles each */
    tile_measure_fn *measure;
    struct tally tally;
    fixed_sum space, time, trace;
    bool has_overflowed; /* a sum is not finite, or too large for `fixed_sum` */
};

/* Returns true if x is a bad link, and y either is good or comes later in the file than x. */
static bool is_before(const struct limefile_physics_bad_link *x,
                      const struct limefile_physics_bad_link *y)
{
    if (y->defect == LIMEFILE_PHYSICS_GOOD || x->defect == LIMEFILE_PHYSICS_GOOD)
        return x->defect != LIMEFILE_PHYSICS_GOOD;
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

/* Measures a link and updates the tally, except bad_links, bad_sites and first. Returns true if
 * the link is bad. Sets the defect of *bad, and its number or deviation. */
static bool check_link(struct tally *t, double bound, const double *u,
                       struct limefile_physics_bad_link *bad)
{
    double unitarity, determinant;
    int nonfinite_at = limefile_physics_measure_link(u, &unitarity, &determinant);
    bad->defect = LIMEFILE_PHYSICS_GOOD;
    if (nonfinite_at >= 0) {
        bad->defect = isnan(u[nonfinite_at]) ? LIMEFILE_PHYSICS_NAN : LIMEFILE_PHYSICS_INFINITE;
        bad->number = (unsigned)nonfinite_at;
        for (int i = nonfinite_at; i < LIMEFILE_LINK_REALS; i++)
            t->nonfinite += !isfinite(u[i]);
        return true;
    }
    t->unitarity = larger(t->unitarity, unitarity);
    t->determinant = larger(t->determinant, determinant);
    if (unitarity > bound) {
        bad->defect = LIMEFILE_PHYSICS_UNITARITY;
        bad->deviation = unitarity;
    } else if (determinant > bound) {
        bad->defect = LIMEFILE_PHYSICS_DETERMINANT;
        bad->deviation = determinant;
    }
    return bad->defect != LIMEFILE_PHYSICS_GOOD;
}

/* Measures each link of a tile and finds the bad links. at: the first site's coordinates. */
static void check_tile(struct limefile_physics_planes *p, const double *tile, unsigned count,
                       const uint64_t at[4])
{
    const uint64_t *extent = p->extent;
    struct tally *t = &p->tally;
    uint64_t first = ((at[3] * extent[2] + at[2]) * extent[1] + at[1]) * extent[0] + at[0];
    for (unsigned i = 0; i < count; i++) {
        unsigned bad_before = 0;
        for (unsigned mu = 0; mu < 4; mu++) {
            double u[LIMEFILE_LINK_REALS];
            struct limefile_physics_bad_link bad = {
                .site = first + i,
                .at = {at[0] + i, at[1], at[2], at[3]},
                .direction = mu,
            };
            for (unsigned c = 0; c < LIMEFILE_LINK_REALS; c++)
                u[c] = tile[(size_t)(mu * LIMEFILE_LINK_REALS + c) * TILE_PITCH + i];
            if (!check_link(t, p->bound, u, &bad))
                continue;
            t->bad_links++;
            t->bad_sites += bad_before++ == 0;
            if (is_before(&bad, &t->first))
                t->first = bad;
        }
    }
}

/* Adds the deviations of a tile to the tally. If largest_square is at most bound^2, no link is
 * bad, so the links need not be measured one by one. */
static void tally_deviations(struct limefile_physics_planes *p, const double *tile,
                             unsigned count, const uint64_t at[4], const struct tile_sums *sums)
{
    struct tally *t = &p->tally;
    if (!sums->finite || sums->largest_square > p->bound * p->bound) {
        check_tile(p, tile, count, at);
        return;
    }
    t->unitarity = larger(t->unitarity, __builtin_sqrt(sums->unitarity));
    t->determinant = larger(t->determinant, __builtin_sqrt(sums->determinant));
}

static size_t row_reals(const uint64_t extent[4])
{
    return (size_t)((extent[0] - 1) / TILE_SITES + 1) * TILE_REALS;
}

static size_t count_rows(uint64_t planes_at_once)
{
    return (size_t)(2 * planes_at_once + 3);
}

static uint64_t choose_planes(const uint64_t extent[4])
{
    uint64_t planes_at_once = LIMEFILE_PHYSICS_PLANES;
    size_t row = row_reals(extent) * sizeof(double);
    while (planes_at_once > 1 && row > ROWS_BYTES / count_rows(planes_at_once))
        planes_at_once--;
    return planes_at_once;
}

size_t limefile_physics_planes_bytes(const uint64_t extent[4])
{
    size_t bytes;
    if (extent[0] == 0 || extent[0] > SIZE_MAX / 4096 ||
        __builtin_mul_overflow(row_reals(extent) * sizeof(double),
                               count_rows(choose_planes(extent)), &bytes))
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
    p->planes_at_once = choose_planes(extent);
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

/* Adds the value, or sets has_overflowed if links far from SU(3) make the sum too large. */
static void add_fixed(struct limefile_physics_planes *p, fixed_sum *sum, double value)
{
    if (!(fabs(value) < 0x1p64))
        p->has_overflowed = true;
    else if (__builtin_add_overflow(*sum, (fixed_sum)(value * fixed_one), sum))
        p->has_overflowed = true;
}

static void merge_fixed(struct limefile_physics_planes *p, fixed_sum *sum, fixed_sum other)
{
    if (__builtin_add_overflow(*sum, other, sum))
        p->has_overflowed = true;
}

void limefile_physics_planes_merge(struct limefile_physics_planes *p,
                                   const struct limefile_physics_planes *other)
{
    merge_fixed(p, &p->space, other->space);
    merge_fixed(p, &p->time, other->time);
    merge_fixed(p, &p->trace, other->trace);
    p->has_overflowed |= other->has_overflowed;
    merge_tally(&p->tally, &other->tally);
}

void limefile_physics_planes_result(const struct limefile_physics_planes *p,
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
        /* Each site has 3 spatial and 3 temporal plaquettes and 4 links; tr 1 is 3. */
        .space = (double)p->space / fixed_one / (9 * sites),
        .time = (double)p->time / fixed_one / (9 * sites),
        .trace = (double)p->trace / fixed_one / (12 * sites),
    };
    out->plaquette = (out->space + out->time) / 2;
    if (p->has_overflowed || t->nonfinite)
        out->plaquette = out->space = out->time = out->trace = NAN;
}

/* Planes that are processed together. */
struct plane_group {
    struct limefile_physics_planes *p;
    const struct limefile_physics_slab *slab;
    uint64_t first, planes;          /* the slab's planes [first, first + planes) */
    double *here, *next, *next_time; /* unpacked rows: y, y + 1, and y of the next time slice */
};

static size_t plane_bytes(const struct limefile_physics_planes *p)
{
    return (size_t)(p->extent[0] * p->extent[1]) * LIMEFILE_SITE_REALS * (p->precision / 8);
}

/* Returns the unpacked row of plane k of the group. */
static double *row_at(const struct limefile_physics_planes *p, double *rows, uint64_t k)
{
    return rows + (size_t)k * p->row_tiles * TILE_REALS;
}

/* Unpacks the row y of a plane. In x, the row's first site follows its last one. */
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

/* Unpacks the row y of the group's planes and, if `above`, of the plane above them in z. */
static void load_rows(const struct plane_group *s, uint64_t y, double *rows, bool above)
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

/* Measures the row y of plane k; s->here, s->next and s->next_time hold the unpacked rows. */
static void measure_row(const struct plane_group *s, uint64_t k, uint64_t y)
{
    struct limefile_physics_planes *p = s->p;
    const double *tile = row_at(p, s->here, k);
    const double *next[3] = {row_at(p, s->next, k), row_at(p, s->here, k + 1), s->next_time};
    uint64_t at[4] = {0, y, (s->slab->z + s->first + k) % p->extent[2], s->slab->t};
    for (uint64_t left = p->extent[0]; left; tile += TILE_REALS) {
        unsigned n = left < TILE_SITES ? (unsigned)left : TILE_SITES;
        struct tile_sums sums;
        p->measure(tile, s->slab->above_t ? next : NULL, n, &sums);
        tally_deviations(p, tile, n, at, &sums);
        add_fixed(p, &p->space, sums.space_plaquettes);
        add_fixed(p, &p->time, sums.time_plaquettes);
        add_fixed(p, &p->trace, sums.trace);
        for (int i = 0; i < 3; i++)
            next[i] += TILE_REALS;
        at[0] += n;
        left -= n;
    }
}

static void prefetch_row(const struct limefile_physics_planes *p, const unsigned char *plane,
                         uint64_t y)
{
    size_t bytes = (size_t)p->extent[0] * LIMEFILE_SITE_REALS * (p->precision / 8);
    const unsigned char *row = plane + (size_t)(y % p->extent[1]) * bytes;
    for (size_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch(row + i, 0, 2);
}

static void measure_planes(struct plane_group *s)
{
    const struct limefile_physics_planes *p = s->p;
    bool has_plaquettes = s->slab->above_t;
    load_rows(s, 0, s->here, has_plaquettes);
    for (uint64_t y = 0; y < p->extent[1]; y++) {
        bool last = y + 1 == p->extent[1];
        if (has_plaquettes || !last)
            load_rows(s, last ? 0 : y + 1, s->next, has_plaquettes && !last);
        for (uint64_t k = 0; k < s->planes; k++) {
            size_t at = (size_t)(s->first + k) * plane_bytes(p);
            if (has_plaquettes)
                load_row(p, s->slab->above_t + at, y, s->next_time);
            if (has_plaquettes)
                prefetch_row(p, s->slab->above_t + at, y + 1);
            prefetch_row(p, s->slab->here + at, y + 2);
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
    struct plane_group s = {.p = p, .slab = slab};
    for (; s.first < slab->planes; s.first += s.planes) {
        uint64_t left = slab->planes - s.first;
        s.planes = left < p->planes_at_once ? left : p->planes_at_once;
        s.here = p->rows;
        s.next = row_at(p, s.here, p->planes_at_once + 1);
        s.next_time = row_at(p, s.next, p->planes_at_once + 1);
        measure_planes(&s);
    }
}
