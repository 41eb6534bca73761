/*
 * plaquette.c - plaquettes of planes of sites
 *
 * A row of sites is turned into 72 rows of numbers, so that four sites are worked on at once by
 * the same instructions; GNU C's vectors become what the processor has. No fused multiply-add:
 * the result has the same bits on each machine of the same kind.
 */
#include "plaquette.h"
#include "links.h"

#include <math.h>

enum {
    LANES = 4,
    REALS = LIMEFILE_LINK_REALS,
    ROWS = 4, /* of scratch: this one, and those above in y, z, t */
};

typedef double lanes __attribute__((vector_size(LANES * 8)));
typedef double loose __attribute__((vector_size(LANES * 8), aligned(8))); /* at x + 1 */

/* Vectors are not passed between functions: how depends on the processor. */
#define INLINE static inline __attribute__((always_inline))

static const double unit = 0x1p40; /* of fixed point */

/* ---- rows ---- */

/* Numbers of a row's sites: a whole lot of lanes, and one site more that is the first again. */
static size_t stride_of(const uint64_t extent[4])
{
    return ((size_t)extent[0] + LANES) / LANES * LANES + LANES;
}

size_t plaquette_scratch(const uint64_t extent[4])
{
    return ROWS * LIMEFILE_SITE_REALS * stride_of(extent);
}

INLINE double real64(const unsigned char *at)
{
    uint64_t bits = get_be64(at);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE double real32(const unsigned char *at)
{
    uint32_t bits = get_be32(at);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* `sites` neighbours: at most LANES, and that is what is fast. */
INLINE void spread(const unsigned char *in, unsigned precision, size_t sites, double *out,
                   size_t stride)
{
    size_t bytes = LIMEFILE_SITE_REALS * (precision / 8);
    for (size_t i = 0; i < LIMEFILE_SITE_REALS; i++, out += stride, in += precision / 8)
        for (size_t x = 0; x < sites; x++)
            out[x] = precision == 64 ? real64(in + x * bytes) : real32(in + x * bytes);
}

/* The same of four sites in double precision, for processors that can shuffle bytes: numbers
 * are swapped four at a time, and squares of four by four turned. */
INLINE void spread_fast(const unsigned char *in, double *out, size_t stride)
{
    typedef uint8_t bytes __attribute__((vector_size(LANES * 8)));
    enum { SITE = LIMEFILE_SITE_REALS * 8 };
    for (size_t i = 0; i < LIMEFILE_SITE_REALS; i += LANES, in += LANES * 8) {
        lanes s[LANES];
        for (size_t x = 0; x < LANES; x++) {
            bytes b;
            memcpy(&b, in + x * SITE, sizeof b);
            s[x] = (lanes)__builtin_shufflevector(b, b, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12,
                                                  11, 10, 9, 8, 23, 22, 21, 20, 19, 18, 17, 16,
                                                  31, 30, 29, 28, 27, 26, 25, 24);
        }
        lanes a = __builtin_shufflevector(s[0], s[1], 0, 4, 2, 6);
        lanes b = __builtin_shufflevector(s[0], s[1], 1, 5, 3, 7);
        lanes c = __builtin_shufflevector(s[2], s[3], 0, 4, 2, 6);
        lanes d = __builtin_shufflevector(s[2], s[3], 1, 5, 3, 7);
        *(loose *)(out + i * stride) = __builtin_shufflevector(a, c, 0, 1, 4, 5);
        *(loose *)(out + (i + 1) * stride) = __builtin_shufflevector(b, d, 0, 1, 4, 5);
        *(loose *)(out + (i + 2) * stride) = __builtin_shufflevector(a, c, 2, 3, 6, 7);
        *(loose *)(out + (i + 3) * stride) = __builtin_shufflevector(b, d, 2, 3, 6, 7);
    }
}

INLINE void load_row(const struct plaquette_plane *p, const unsigned char *plane, uint64_t y,
                     double *row, bool fast)
{
    size_t stride = stride_of(p->extent), bytes = LIMEFILE_SITE_REALS * (p->precision / 8);
    const unsigned char *at = plane + y * p->extent[0] * bytes;
    size_t x = 0;
    for (; x + LANES <= p->extent[0]; x += LANES, at += LANES * bytes)
        if (fast && p->precision == 64)
            spread_fast(at, row + x, stride);
        else if (p->precision == 64)
            spread(at, 64, LANES, row + x, stride);
        else
            spread(at, 32, LANES, row + x, stride);
    if (x < p->extent[0])
        spread(at, p->precision, p->extent[0] - x, row + x, stride);
    for (size_t i = 0; i < LIMEFILE_SITE_REALS; i++)
        row[i * stride + p->extent[0]] = row[i * stride];
}

/* ---- products of four links at once ---- */

INLINE void take(const double *row, size_t stride, unsigned direction, lanes out[REALS])
{
    for (unsigned i = 0; i < REALS; i++)
        out[i] = *(const loose *)(row + (direction * REALS + i) * stride);
}

INLINE void multiply(const lanes a[REALS], const lanes b[REALS], lanes out[REALS])
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned j = 0; j < 3; j++) {
            lanes re = {0}, im = {0};
            for (unsigned k = 0; k < 3; k++) {
                lanes ar = a[6 * i + 2 * k], ai = a[6 * i + 2 * k + 1];
                lanes br = b[6 * k + 2 * j], bi = b[6 * k + 2 * j + 1];
                re += ar * br - ai * bi;
                im += ar * bi + ai * br;
            }
            out[6 * i + 2 * j] = re;
            out[6 * i + 2 * j + 1] = im;
        }
}

/* Re tr of U_m(s) U_n(s + m) U_m(s + n)^+ U_n(s)^+ is added. */
INLINE void plaquette(const double *here, const double *above_m, const double *above_n,
                      size_t stride, unsigned m, unsigned n, lanes *sum)
{
    lanes a[REALS], b[REALS], one[REALS], other[REALS];
    take(here, stride, m, a);
    take(above_m, stride, n, b);
    multiply(a, b, one);
    take(here, stride, n, a);
    take(above_n, stride, m, b);
    multiply(a, b, other);
    for (unsigned i = 0; i < REALS; i++)
        *sum += one[i] * other[i];
}

INLINE double sum_of(const lanes *values, uint64_t count)
{
    double sum = 0;
    for (unsigned i = 0; i < LANES && i < count; i++)
        sum += (*values)[i];
    return sum;
}

INLINE double row_of_plaquettes(const struct plaquette_plane *p, const double *const row[ROWS])
{
    size_t stride = stride_of(p->extent);
    double sum = 0;
    for (uint64_t x = 0; x < p->extent[0]; x += LANES) {
        const double *above[] = {row[0] + x + 1, row[1] + x, row[2] + x, row[3] + x};
        lanes all = {0};
        for (unsigned m = 0; m < 4; m++)
            for (unsigned n = m + 1; n < 4; n++)
                plaquette(row[0] + x, above[m], above[n], stride, m, n, &all);
        sum += sum_of(&all, p->extent[0] - x);
    }
    return sum;
}

/* ---- distance from SU(3) ---- */

INLINE void lift(lanes *most, const lanes *value)
{
    typedef int64_t mask __attribute__((vector_size(LANES * 8)));
    mask negative = *value < 0.0;
    lanes size = (lanes)(((mask)*value & ~negative) | ((mask) - *value & negative));
    mask is = size > *most;
    *most = (lanes)(((mask)size & is) | ((mask)*most & ~is));
}

/* Of a row's element from what it must be: conj(a1 b2 - a2 b1). */
INLINE void lift_third(lanes *most, const lanes *u, unsigned c)
{
    const lanes *a1 = u + (c + 1) % 3 * 2, *a2 = u + (c + 2) % 3 * 2;
    const lanes *b1 = a1 + 6, *b2 = a2 + 6;
    lanes re = a1[0] * b2[0] - a1[1] * b2[1] - (a2[0] * b1[0] - a2[1] * b1[1]);
    lanes im = a1[0] * b2[1] + a1[1] * b2[0] - (a2[0] * b1[1] + a2[1] * b1[0]);
    re -= u[12 + 2 * c];
    im += u[13 + 2 * c];
    lift(most, &re);
    lift(most, &im);
}

/* *size: the squares of all elements; not finite if one is not. */
INLINE void deviation(const lanes u[REALS], lanes *most, lanes *size)
{
    lanes norm[3] = {{0}}, re = {0}, im = {0};
    *most = *size = re;
    for (unsigned i = 0; i < REALS; i++)
        norm[i / 6] += u[i] * u[i];
    for (unsigned i = 0; i < 3; i++) {
        *size += norm[i];
        norm[i] -= 1.0;
        lift(most, &norm[i]);
    }
    for (unsigned i = 0; i < 6; i += 2) {
        re += u[i] * u[6 + i] + u[i + 1] * u[7 + i];
        im += u[i] * u[7 + i] - u[i + 1] * u[6 + i];
    }
    lift(most, &re);
    lift(most, &im);
    for (unsigned c = 0; c < 3; c++)
        lift_third(most, u, c);
}

double limefile_gauge_deviation(const double link[LIMEFILE_LINK_REALS])
{
    lanes u[REALS], most, size;
    for (unsigned i = 0; i < REALS; i++)
        u[i] = (lanes){link[i], link[i], link[i], link[i]};
    deviation(u, &most, &size);
    return isfinite(size[0]) ? most[0] : INFINITY;
}

/* Four sites at most, the first of which has that rank. */
INLINE void judge(const lanes *most, const lanes *size, uint64_t count, uint64_t rank,
                  unsigned direction, struct figures *f)
{
    for (unsigned i = 0; i < LANES && i < count; i++)
        if (!isfinite((*size)[i])) {
            f->unfinite++;
        } else if ((*most)[i] > f->deviation ||
                   ((*most)[i] == f->deviation && rank + i < f->worst_site)) {
            f->deviation = (*most)[i];
            f->worst_site = rank + i;
            f->worst_direction = direction;
        }
}

INLINE double row_of_links(const struct plaquette_plane *p, const double *row, uint64_t rank,
                           struct figures *f)
{
    size_t stride = stride_of(p->extent);
    double sum = 0;
    for (uint64_t x = 0; x < p->extent[0]; x += LANES)
        for (unsigned d = 0; d < 4; d++) {
            lanes u[REALS], most, size, trace;
            take(row + x, stride, d, u);
            trace = u[0] + u[8] + u[16];
            sum += sum_of(&trace, p->extent[0] - x);
            deviation(u, &most, &size);
            judge(&most, &size, p->extent[0] - x, rank + x, d, f);
        }
    return sum;
}

/* ---- planes ---- */

/* Of links that are far from SU(3) the sum may be beyond what a figure can be. */
static figure wrapped_sum(figure a, figure b)
{
    return (figure)((unsigned __int128)a + (unsigned __int128)b);
}

/* What is not finite is counted, and no figure is made of it. */
static figure fixed(double value)
{
    return fabs(value) < 0x1p80 ? (figure)(value * unit) : 0;
}

double plaquette_of_figure(figure value)
{
    return (double)value / unit;
}

INLINE void add(const struct plaquette_plane *p, double *scratch, struct figures *f, bool fast)
{
    size_t one = plaquette_scratch(p->extent) / ROWS;
    double *row[ROWS], plaquettes = 0, traces = 0;
    for (int i = 0; i < ROWS; i++)
        row[i] = scratch + (size_t)i * one;
    load_row(p, p->here, 0, row[0], fast);
    for (uint64_t y = 0; y < p->extent[1]; y++) {
        traces += row_of_links(p, row[0], p->first + y * p->extent[0], f);
        load_row(p, p->here, (y + 1) % p->extent[1], row[1], fast);
        if (p->above_t) {
            load_row(p, p->above_z, y, row[2], fast);
            load_row(p, p->above_t, y, row[3], fast);
            plaquettes += row_of_plaquettes(p, (const double *const *)row);
        }
        double *next = row[1];
        row[1] = row[0];
        row[0] = next;
    }
    f->plaquette = wrapped_sum(f->plaquette, fixed(plaquettes));
    f->trace = wrapped_sum(f->trace, fixed(traces));
}

static void add_plain(const struct plaquette_plane *p, double *scratch, struct figures *f)
{
    add(p, scratch, f, false);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_avx2(const struct plaquette_plane *p,
                                                     double *scratch, struct figures *f)
{
    add(p, scratch, f, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}
#endif

void plaquette_add(const struct plaquette_plane *p, double *scratch, struct figures *f)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(p, scratch, f);
        return;
    }
#endif
    add_plain(p, scratch, f);
}

void plaquette_combine(struct figures *f, const struct figures *more)
{
    f->plaquette = wrapped_sum(f->plaquette, more->plaquette);
    f->trace = wrapped_sum(f->trace, more->trace);
    f->unfinite += more->unfinite;
    if (more->deviation > f->deviation ||
        (more->deviation == f->deviation && more->worst_site < f->worst_site)) {
        f->deviation = more->deviation;
        f->worst_site = more->worst_site;
        f->worst_direction = more->worst_direction;
    }
}
