/* test_physics.c - measurements of configurations against plain loops; output of passes */
#define _GNU_SOURCE
#include "unit.h"
#include "limegauge.h"
#include "gauge.h"
#include "tile.h"

#include <complex.h>
#include <float.h>
#include <math.h>

/* ---- a configuration in memory ---- */

typedef struct {
    double complex e[3][3];
} su3;

struct config {
    uint64_t extent[4];
    uint64_t count;
    su3 *u; /* 4 a site */
    unsigned precision;
    unsigned char *raw; /* in file order */
    uint64_t fail_at;   /* site whose reading fails; UINT64_MAX: none */
};

static uint64_t dice = 1;

/* In [-1, 1). */
static double number(void)
{
    return (double)(chance(&dice) >> 11) * 0x1p-52 - 1;
}

static su3 random_su3(void)
{
    su3 u;
    for (int a = 0; a < 2; a++) {
        double norm = 0;
        double complex overlap = 0;
        for (int b = 0; b < 3; b++)
            u.e[a][b] = number() + I * number();
        for (int b = 0; a && b < 3; b++)
            overlap += conj(u.e[0][b]) * u.e[1][b];
        for (int b = 0; a && b < 3; b++)
            u.e[1][b] -= overlap * u.e[0][b];
        for (int b = 0; b < 3; b++)
            norm += creal(u.e[a][b] * conj(u.e[a][b]));
        for (int b = 0; b < 3; b++)
            u.e[a][b] /= sqrt(norm);
    }
    for (int b = 0; b < 3; b++) {
        int c = (b + 1) % 3, d = (b + 2) % 3;
        u.e[2][b] = conj(u.e[0][c] * u.e[1][d] - u.e[0][d] * u.e[1][c]);
    }
    return u;
}

static void store(struct config *c, uint64_t link)
{
    size_t size = c->precision / 8;
    unsigned char *out = c->raw + link * 18 * size;
    for (int i = 0; i < 18; i++) {
        double complex z = c->u[link].e[i / 6][i / 2 % 3];
        double value = i % 2 ? cimag(z) : creal(z);
        float narrow = (float)value;
        uint64_t bits = 0;
        uint32_t bits32;
        memcpy(&bits, &value, sizeof bits);
        memcpy(&bits32, &narrow, sizeof bits32);
        if (size == 4)
            bits = bits32;
        for (size_t k = 0; k < size; k++)
            *out++ = (unsigned char)(bits >> 8 * (size - 1 - k));
    }
}

static void store_all(struct config *c)
{
    for (uint64_t i = 0; i < 4 * c->count; i++)
        store(c, i);
}

static struct config make(uint64_t x, uint64_t y, uint64_t z, uint64_t t, unsigned precision)
{
    struct config c = {
        .extent = {x, y, z, t},
        .count = x * y * z * t,
        .precision = precision,
        .fail_at = UINT64_MAX,
    };
    c.u = calloc(4 * c.count, sizeof *c.u);
    c.raw = malloc(4 * c.count * 18 * (precision / 8));
    assert_true(c.u && c.raw);
    for (uint64_t i = 0; i < 4 * c.count; i++)
        c.u[i] = random_su3();
    store_all(&c);
    return c;
}

static void release(struct config *c)
{
    free(c->u);
    free(c->raw);
}

static int read_config(void *context, uint64_t first, uint64_t count, void *out)
{
    struct config *c = context;
    size_t size = (size_t)72 * (c->precision / 8);
    if (first >= c->count || count > c->count - first)
        return -EFAULT;
    if (c->fail_at >= first && c->fail_at - first < count)
        return -EIO;
    memcpy(out, c->raw + first * size, (size_t)count * size);
    return 0;
}

static struct limefile_sites sites_of(struct config *c)
{
    struct limefile_sites sites = {
        .precision = c->precision, .read = read_config, .context = c};
    memcpy(sites.extent, c->extent, sizeof sites.extent);
    return sites;
}

/* Uses blocks with as few planes as possible if `memory` is small. */
static struct limefile_physics measure_in(struct config *c, unsigned threads, size_t memory)
{
    struct limefile_sites sites = sites_of(c);
    const struct limefile_gauge_pass pass = {
        .sites = &sites, .threads = threads, .memory = memory};
    struct limefile_gauge_totals out;
    assert_int_equal(limefile_gauge_pass_run(&pass, &out), 0);
    return out.physics;
}

static struct limefile_physics measure(struct config *c, unsigned threads)
{
    return measure_in(c, threads, 0);
}

/* ---- the reference ---- */

static uint64_t neighbour(const struct config *c, uint64_t site, int mu)
{
    uint64_t stride = 1;
    for (int d = 0; d < mu; d++)
        stride *= c->extent[d];
    uint64_t at = site / stride % c->extent[mu];
    return at + 1 < c->extent[mu] ? site + stride : site - at * stride;
}

static su3 product(const su3 *a, const su3 *b, bool dagger)
{
    su3 out;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            out.e[i][j] = 0;
            for (int k = 0; k < 3; k++)
                out.e[i][j] += a->e[i][k] * (dagger ? conj(b->e[j][k]) : b->e[k][j]);
        }
    return out;
}

static su3 as_stored(const struct config *c, uint64_t link)
{
    su3 u = c->u[link];
    for (int i = 0; c->precision == 32 && i < 9; i++)
        u.e[i / 3][i % 3] =
            (float)creal(u.e[i / 3][i % 3]) + I * (double)(float)cimag(u.e[i / 3][i % 3]);
    return u;
}

static double complex trace_of(const su3 *u)
{
    return u->e[0][0] + u->e[1][1] + u->e[2][2];
}

static double plaquette_at(const struct config *c, uint64_t site, int mu, int nu)
{
    su3 a = as_stored(c, 4 * site + mu), b = as_stored(c, 4 * neighbour(c, site, mu) + nu);
    su3 d = as_stored(c, 4 * neighbour(c, site, nu) + mu), e = as_stored(c, 4 * site + nu);
    su3 way = product(&a, &b, false);
    way = product(&way, &d, true);
    way = product(&way, &e, true);
    return creal(trace_of(&way)) / 3;
}

static double deviation_of(const su3 *u)
{
    su3 square = product(u, u, true);
    double most = 0;
    for (int i = 0; i < 9; i++)
        most = fmax(most, cabs(square.e[i / 3][i % 3] - (i % 4 == 0)));
    return most;
}

static double complex determinant_of(const su3 *u)
{
    double complex sum = 0;
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        sum += u->e[0][i] * (u->e[1][j] * u->e[2][k] - u->e[1][k] * u->e[2][j]);
    }
    return sum;
}

static struct limefile_physics reference(const struct config *c)
{
    struct limefile_physics p = {0};
    for (uint64_t site = 0; site < c->count; site++)
        for (int mu = 0; mu < 4; mu++) {
            su3 u = as_stored(c, 4 * site + mu);
            for (int nu = 0; nu < mu; nu++)
                *(mu == 3 ? &p.time : &p.space) += plaquette_at(c, site, mu, nu);
            p.trace += creal(trace_of(&u)) / 3;
            p.unitarity = fmax(p.unitarity, deviation_of(&u));
            p.determinant = fmax(p.determinant, cabs(determinant_of(&u) - 1));
        }
    p.space /= 3 * (double)c->count;
    p.time /= 3 * (double)c->count;
    p.trace /= 4 * (double)c->count;
    p.plaquette = (p.space + p.time) / 2;
    return p;
}

static void assert_near(double have, double want, double within)
{
    if (!(fabs(have - want) <= within))
        fail_msg("%.17g, not %.17g", have, want);
}

static void assert_same_values(const struct limefile_physics *have,
                               const struct limefile_physics *want)
{
    assert_near(have->plaquette, want->plaquette, 1e-14);
    assert_near(have->space, want->space, 1e-14);
    assert_near(have->time, want->time, 1e-14);
    assert_near(have->trace, want->trace, 1e-14);
    assert_near(have->unitarity, want->unitarity, 2e-15);
    assert_near(have->determinant, want->determinant, 2e-15);
}

static void assert_same_bits(const struct limefile_physics *have,
                             const struct limefile_physics *want)
{
    assert_memory_equal(&have->plaquette, &want->plaquette, 7 * sizeof(double));
    assert_int_equal(have->nonfinite, want->nonfinite);
    assert_int_equal(have->bad_links, want->bad_links);
    assert_int_equal(have->bad_sites, want->bad_sites);
    assert_int_equal(have->first.defect, want->first.defect);
    assert_int_equal(have->first.site, want->first.site);
    assert_int_equal(have->first.direction, want->first.direction);
}

/* ---- values ---- */

/* Rows that do not fill a tile, one, many; few planes and many. */
static const uint64_t shapes[][4] = {
    {1, 1, 1, 1},    {2, 2, 2, 2},   {1, 2, 3, 4},   {4, 3, 2, 1},    {3, 5, 1, 2},
    {8, 4, 4, 2},    {31, 2, 1, 3},  {32, 1, 2, 2},  {33, 3, 2, 1},   {64, 1, 1, 2},
    {65, 2, 2, 2},   {4, 20, 21, 2}, {2, 200, 1, 2}, {1, 1, 190, 3},  {3, 1, 400, 1},
    {600, 2, 2, 2},  {513, 1, 3, 1}, {512, 3, 1, 1}, {1100, 9, 2, 1}, {1025, 1, 1, 1},
    {40, 14, 15, 2}, {7, 183, 2, 1},
};

TEST(test_shapes)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const uint64_t *e = shapes[i];
        struct config c = make(e[0], e[1], e[2], e[3], i % 3 == 1 ? 32 : 64);
        if (i % 2)
            c.u[4 * (c.count / 2)].e[1][1] *= 1.25;
        store_all(&c);
        struct limefile_physics want = reference(&c), have = measure(&c, 1 + i % 4);
        struct limefile_physics blocks = measure_in(&c, 1 + (i + 1) % 3, 1);
        assert_same_values(&have, &want);
        assert_same_bits(&blocks, &have);
        assert_int_equal(have.bad_links, i % 2);
        assert_int_equal(have.nonfinite, 0);
        assert_int_equal(have.first.defect,
                         i % 2 ? LIMEFILE_PHYSICS_UNITARITY : LIMEFILE_PHYSICS_GOOD);
        assert_true(have.bound == (c.precision == 32 ? 1e-4 : 1e-6));
        release(&c);
    }
}

/* Every instruction set gives the same bits. */
TEST(test_instructions_same_bits)
{
    double *tiles = aligned_alloc(64, 4 * TILE_REALS * sizeof *tiles + 64);
    const double *next[3];
    assert_non_null(tiles);
    for (int i = 0; i < 4 * TILE_REALS + 8; i++)
        tiles[i] = number();
    for (int i = 0; i < 3; i++)
        next[i] = tiles + (size_t)(i + 1) * TILE_REALS;
    for (unsigned count = 1; count <= TILE_SITES; count++) {
        struct tile_sums any, best;
        tile_measure_plain(tiles, next, count, &any);
        tile_measure_best()(tiles, next, count, &best);
        assert_memory_equal(&any, &best, offsetof(struct tile_sums, finite));
        assert_true(any.finite && best.finite);
    }
    free(tiles);
}

/* ---- bad links ---- */

static void put_real(struct config *c, uint64_t link, int real, double value)
{
    double complex *z = &c->u[link].e[real / 6][real / 2 % 3];
    double part[2] = {creal(*z), cimag(*z)};
    part[real % 2] = value;
    *z = CMPLX(part[0], part[1]);
    store(c, link);
}

static void assert_first(const struct limefile_physics *p, const struct config *c,
                         uint64_t link, enum limefile_physics_defect wrong)
{
    uint64_t site = link / 4;
    assert_int_equal(p->first.defect, wrong);
    assert_int_equal(p->first.site, site);
    assert_int_equal(p->first.direction, link % 4);
    for (int d = 0; d < 4; site /= c->extent[d++])
        assert_int_equal(p->first.at[d], site % c->extent[d]);
}

/* The first bad link in the file is reported, though threads find others before. */
TEST(test_bad_links)
{
    struct config c = make(5, 20, 19, 4, 64);
    const uint64_t bad[] = {4 * c.count - 1, 9001, 9002, 4321, 1234};
    for (size_t i = 0; i < COUNT(bad); i++) {
        put_real(&c, bad[i], 5, 0.25);
        for (unsigned threads = 1; threads <= 4; threads += 3) {
            struct limefile_physics p = measure(&c, threads), want = reference(&c);
            bool pair = i > 1; /* 9001 and 9002 belong to one site */
            uint64_t first = bad[i] == 9002 ? 9001 : bad[i];
            assert_same_values(&p, &want);
            assert_int_equal(p.bad_links, i + 1);
            assert_int_equal(p.bad_sites, i + 1 - pair);
            assert_int_equal(p.nonfinite, 0);
            assert_first(&p, &c, first, LIMEFILE_PHYSICS_UNITARITY);
            assert_near(p.first.deviation, deviation_of(&c.u[first]), 1e-15);
        }
    }
    release(&c);
}

TEST(test_not_finite)
{
    for (unsigned precision = 32; precision <= 64; precision += 32) {
        struct config c = make(6, 4, 4, 4, precision);
        double unitarity = measure(&c, 1).unitarity;
        put_real(&c, 700, 7, NAN);
        put_real(&c, 700, 9, -INFINITY);
        struct limefile_physics p = measure(&c, 2);
        assert_first(&p, &c, 700, LIMEFILE_PHYSICS_NAN);
        assert_int_equal(p.first.number, 7);
        put_real(&c, 41, 0, INFINITY);
        p = measure(&c, 3);
        assert_first(&p, &c, 41, LIMEFILE_PHYSICS_INFINITE);
        assert_int_equal(p.first.number, 0);
        assert_int_equal(p.nonfinite, 3);
        assert_int_equal(p.bad_links, 2);
        assert_int_equal(p.bad_sites, 2);
        assert_true(isnan(p.plaquette) && isnan(p.space) && isnan(p.time) && isnan(p.trace));
        assert_true(p.unitarity <= unitarity); /* of the good links */
        release(&c);
    }
}

/* The links are finite, but their products are not. */
TEST(test_huge)
{
    struct config c = make(3, 3, 3, 3, 64);
    for (int i = 0; i < 18; i++)
        put_real(&c, 13, i, 1e300);
    struct limefile_physics p = measure(&c, 2);
    assert_first(&p, &c, 13, LIMEFILE_PHYSICS_UNITARITY);
    assert_true(p.first.deviation == DBL_MAX && p.unitarity == DBL_MAX);
    assert_int_equal(p.nonfinite, 0);
    assert_int_equal(p.bad_links, 1);
    release(&c);
}

/* Just below and above the bound: a factor f changes unitarity by f^2 - 1. */
TEST(test_bounds)
{
    for (unsigned precision = 32; precision <= 64; precision += 32) {
        double bound = precision == 32 ? 1e-4 : 1e-6;
        for (int beyond = 0; beyond < 2; beyond++) {
            struct config c = make(4, 4, 4, 4, precision);
            double by = sqrt(1 + bound * (beyond ? 1.01 : 0.6)); /* det: 1.5 times as much */
            for (int i = 0; i < 9; i++)
                c.u[500].e[i / 3][i % 3] *= by;
            store(&c, 500);
            assert_int_equal(measure(&c, 1).bad_links, beyond);
            release(&c);
        }
    }
}

/* ---- output of a pass ---- */

struct written {
    unsigned char *at, *marks;
    uint64_t size;
    uint64_t sites;
};

static int keep(void *context, const void *data, size_t n, uint64_t offset)
{
    struct written *w = context;
    assert_true(offset <= w->size && n <= w->size - offset);
    memcpy(w->at + offset, data, n);
    for (size_t i = 0; i < n; i++)
        w->marks[offset + i]++;
    return 0;
}

static bool count(void *context, uint64_t more)
{
    ((struct written *)context)->sites += more;
    return true;
}

/* Writes the file by a pass in blocks of few planes, with several threads. */
static void run_pass(const struct limefile_sites *sites, struct limefile_gauge_image *image,
                     struct written *w, unsigned threads, size_t memory,
                     struct limefile_gauge_totals *totals)
{
    struct limefile_gauge_pass pass = {
        .sites = sites,
        .image = image,
        .write = keep,
        .progress = count,
        .context = w,
        .threads = threads,
        .memory = memory,
    };
    uint64_t from = limefile_gauge_image_data_offset(image);
    uint64_t bytes = image->data_bytes;
    *w = (struct written){.size = from + bytes};
    w->at = calloc(1, w->size);
    w->marks = calloc(1, w->size);
    assert_non_null(w->at);
    assert_non_null(w->marks);
    assert_int_equal(limefile_gauge_pass_run(&pass, totals), 0);
    assert_int_equal(w->sites, limefile_sites_count(sites));
    for (uint64_t i = 0; i < w->size; i++)
        assert_int_equal(w->marks[i], i >= from);
}

static void check_ranges(const struct limefile_gauge_image *image, const struct written *w)
{
    uint64_t size = limefile_gauge_image_size(image), seed = 1;
    uint64_t from = limefile_gauge_image_data_offset(image);
    unsigned char *whole = malloc(size), *part = malloc(size);
    assert_int_equal(limefile_gauge_image_read(image, whole, size + 9, 0), size);
    assert_memory_equal(whole + from, w->at + from, w->size - from);
    for (int i = 0; i < 300; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = (seed >> 20) % size, n = (seed >> 8) % (i % 3 ? 3000 : size);
        uint64_t left = size - at < n ? size - at : n;
        assert_int_equal(limefile_gauge_image_read(image, part, n, at), left);
        assert_memory_equal(part, whole + at, left);
    }
    assert_int_equal(limefile_gauge_image_read(image, part, 10, size), 0);
    assert_int_equal(limefile_gauge_image_read(image, part, 10, UINT64_MAX), 0);
    free(whole);
    free(part);
}

/* Reads of an image, in ranges of odd places and lengths, give the stored data. */
static void check_back(const struct config *c, const struct limefile_gauge_image *image)
{
    uint64_t size = limefile_gauge_image_size(image);
    size_t site = (size_t)72 * (c->precision / 8);
    struct limefile_memory file;
    struct limefile_gauge *g;
    unsigned char *whole = malloc(size), *part = malloc(41 * site);
    assert_int_equal(limefile_gauge_image_read(image, whole, size, 0), size);
    limefile_memory_borrow(&file, whole, size);
    assert_int_equal(limefile_gauge_open(&file.source, 0, &g, NULL), 0);
    assert_int_equal(g->sites.precision, c->precision);
    for (uint64_t i = 0; i < c->count; i += 5) {
        uint64_t n = i % 3 * 20 + 1 < c->count - i ? i % 3 * 20 + 1 : 1;
        assert_int_equal(g->sites.read(g->sites.context, i, n, part), 0);
        assert_memory_equal(part, c->raw + i * site, n * site);
    }
    limefile_gauge_close(g);
    free(part);
    free(whole);
}

static void check_format(enum limefile_gauge_format format, unsigned stored, unsigned precision,
                         unsigned rows)
{
    struct limefile_gauge_options form = {
        .format = format, .precision = precision, .rows = rows, .lfn = "lfn://x"};
    struct config c = make(6, 4, 8, 6, stored);
    struct limefile_sites sites = sites_of(&c);
    struct written w;
    struct limefile_gauge_image *image;
    struct limefile_gauge_totals first, more;
    assert_int_equal(limefile_gauge_image_new(&sites, &form, &image), 0);
    run_pass(&sites, image, &w, 1, 0, &first);
    for (unsigned i = 0; i < 3; i++) {
        static const size_t memory[] = {1, 100000, 240000};
        struct written again;
        run_pass(&sites, image, &again, i + 2, memory[i], &more);
        assert_same_bits(&first.physics, &more.physics);
        assert_memory_equal(&first.image, &more.image, sizeof first.image);
        assert_memory_equal(w.at, again.at, w.size);
        free(again.at);
        free(again.marks);
    }
    assert_int_equal(limefile_gauge_image_read(image, w.marks, 1, 0), LIMEFILE_E_STATE);
    assert_int_equal(limefile_gauge_image_seal(image, &first), 0);
    check_ranges(image, &w);
    if (rows == 3 && precision == stored)
        check_back(&c, image);
    limefile_gauge_image_free(image);
    free(w.at);
    free(w.marks);
    release(&c);
}

TEST(test_formats)
{
    for (unsigned stored = 32; stored <= 64; stored += 32) {
        for (unsigned precision = 32; precision <= 64; precision += 32) {
            check_format(LIMEFILE_GAUGE_ILDG, stored, precision, 3);
            check_format(LIMEFILE_GAUGE_NERSC, stored, precision, 3);
            check_format(LIMEFILE_GAUGE_NERSC, stored, precision, 2);
        }
        check_format(LIMEFILE_GAUGE_MILC, stored, 32, 3);
        check_format(LIMEFILE_GAUGE_OPENQCD, stored, 64, 3);
    }
}

/* ---- errors ---- */

static bool stop(void *context, uint64_t more)
{
    (void)context;
    (void)more;
    return false;
}

/* The first error is returned and all threads end, also if the caller stops the pass. */
TEST(test_failures)
{
    struct config c = make(6, 4, 8, 6, 32);
    struct limefile_sites sites = sites_of(&c);
    struct limefile_gauge_totals totals;
    for (unsigned threads = 1; threads <= 4; threads++) {
        struct limefile_gauge_pass pass = {.sites = &sites, .threads = threads, .memory = 1};
        for (c.fail_at = 0; c.fail_at < c.count; c.fail_at += 97)
            assert_int_equal(limefile_gauge_pass_run(&pass, &totals), -EIO);
        c.fail_at = UINT64_MAX;
        pass.progress = stop;
        assert_int_equal(limefile_gauge_pass_run(&pass, &totals), -EINTR);
    }
    release(&c);
}

static int refuse(void *context, uint64_t first, uint64_t count, void *out)
{
    (void)context;
    (void)first;
    memset(out, 0xff, (size_t)count * 576); /* the buffer must be large enough */
    return -EIO;
}

/* Invalid lattices, and ones that are too large to read. */
TEST(test_extents)
{
    const uint64_t huge = UINT64_C(1) << 54;
    const struct {
        uint64_t extent[4];
        unsigned precision;
        int err;
    } cases[] = {
        {{2, 2, 2, 2}, 65, -EINVAL},
        {{2, 2, 0, 2}, 64, -EINVAL},
        {{2, 2, UINT64_MAX, 2}, 64, -EINVAL},
        {{2, 2, huge, 2}, 64, -EINVAL},
        {{huge, 1, 1, 1}, 64, -ENOMEM},
        {{1, huge, 1, 1}, 64, -ENOMEM},
        {{1, 1, huge, 1}, 64, -EIO},
        {{1, 1, 1, huge}, 64, -EIO},
        {{1 << 13, 1 << 13, 1 << 13, 1 << 13}, 64, -ENOMEM},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct limefile_sites sites = {.precision = cases[i].precision, .read = refuse};
        const struct limefile_gauge_pass pass = {.sites = &sites, .threads = 2};
        struct limefile_gauge_totals totals;
        memcpy(sites.extent, cases[i].extent, sizeof sites.extent);
        assert_int_equal(limefile_gauge_pass_run(&pass, &totals), cases[i].err);
    }
}

/* ---- values in metadata ---- */

static struct limefile_physics_stated state_text(const char *text)
{
    struct limefile_physics_stated s;
    limefile_physics_parse(&s, LIMEFILE_PHYSICS_PLAQUETTE, 1, "plaquette", text, strlen(text));
    return s;
}

TEST(test_agrees)
{
    const struct {
        double is;
        const char *text;
        bool single, twice; /* whether they agree, in each precision */
    } cases[] = {
        {0.59, "0.590000000000", true, true},
        {0.59, "0.590000090000", true, true},
        {0.59, "0.590000110000", true, false},
        {0.59, "0.590009000000", true, false},
        {0.59, "0.590011000000", false, false},
        {0.59004, "0.5900", true, true},
        {0.59004, "5.900e-01", true, true},
        {0.5904, "0.59", true, true},
        {0.592, "0.59", false, false},
        {0.5, "1", false, false},
        {0.59, "-0.59", false, false},
        {NAN, "0.59", false, false},
        {INFINITY, "0.59", false, false},
        {0.59, "0e300", false, false},
        {0.5, " +.5\n", true, true},
        {-2.5, "-0.25E+1", true, true},
        {1, "1.", true, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct limefile_physics_stated s = state_text(cases[i].text);
        struct limefile_physics p = {.plaquette = cases[i].is};
        if (limefile_physics_agrees(&p, &s, 32) != cases[i].single ||
            limefile_physics_agrees(&p, &s, 64) != cases[i].twice)
            fail_msg("%g and %s", cases[i].is, cases[i].text);
    }
}
