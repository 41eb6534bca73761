/* tile.c - compute plaquettes, traces and deviations of the links of many sites at once */
#include "tile.h"

#include <string.h>

/* Compilers vectorize this loop: `i` has the width of a pointer, so it cannot wrap around. */
#define EACH_SITE(i, n) for (size_t i = 0; i < (n); i++)

enum {
    LANES = 8, /* loops process groups of 8 sites, so that vectors of 2, 4 or 8 doubles fit */
    ROW = 6,   /* real numbers in a row of a 3x3 matrix */
};

/* Loads the bits of a big-endian number. */
static inline uint64_t load64(const unsigned char *at)
{
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    bits = __builtin_bswap64(bits);
#endif
    return bits;
}

static inline uint32_t load32(const unsigned char *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    bits = __builtin_bswap32(bits);
#endif
    return bits;
}

/* Writes a site to one column of a tile. column: the first element of that column. */
static void spread64(double *restrict column, const unsigned char *restrict site)
{
    for (size_t c = 0; c < LIMEFILE_SITE_REALS; c++) {
        uint64_t bits = load64(site + 8 * c);
        memcpy(&column[c * TILE_PITCH], &bits, sizeof bits);
    }
}

static void spread32(float *restrict column, const unsigned char *restrict site)
{
    for (size_t c = 0; c < LIMEFILE_SITE_REALS; c++) {
        uint32_t bits = load32(site + 4 * c);
        memcpy(&column[c * TILE_PITCH], &bits, sizeof bits);
    }
}

/* Writes a tile of floats, then converts it to double in a loop that can be vectorized. */
static void unpack32(double *tile, const unsigned char *sites, unsigned count,
                     const unsigned char *next)
{
    float narrow[TILE_REALS];
    for (unsigned i = 0; i < count; i++)
        spread32(narrow + i, sites + (size_t)i * LIMEFILE_SITE_REALS * sizeof(float));
    spread32(narrow + count, next);
    for (size_t c = 0; c < LIMEFILE_SITE_REALS; c++)
        for (size_t i = 0; i <= count; i++)
            tile[c * TILE_PITCH + i] = (double)narrow[c * TILE_PITCH + i];
}

static void unpack_plain(double *tile, const unsigned char *at, unsigned count,
                         const unsigned char *next, unsigned precision)
{
    if (precision == 32) {
        unpack32(tile, at, count, next);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        spread64(tile + i, at + (size_t)i * LIMEFILE_SITE_REALS * sizeof(double));
    spread64(tile + count, next);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The AVX2 code transposes blocks of four real numbers of four sites in registers. */
enum { FOUR = 4 };

#define AVX2        __attribute__((target("avx2")))
#define AVX2_INLINE AVX2 static inline __attribute__((always_inline))

/* Converts four big-endian numbers of 32 or 64 bits to doubles. */
AVX2_INLINE __m256d load_four(const unsigned char *at, unsigned precision)
{
    const __m256i swap64 =
        _mm256_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2,
                         1, 0, 15, 14, 13, 12, 11, 10, 9, 8);
    const __m128i swap32 = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
    __m256i w;
    __m128i h;
    if (precision == 64) {
        memcpy(&w, at, sizeof w);
        return _mm256_castsi256_pd(_mm256_shuffle_epi8(w, swap64));
    }
    memcpy(&h, at, sizeof h);
    return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_shuffle_epi8(h, swap32)));
}

AVX2_INLINE void unpack_four_sites(double *tile, const unsigned char *sites, unsigned precision)
{
    enum { FIRST_HALVES = 0x20, SECOND_HALVES = 0x31 };
    size_t number = precision / 8, site = LIMEFILE_SITE_REALS * number;
    for (size_t c = 0; c < LIMEFILE_SITE_REALS; c += FOUR, sites += FOUR * number) {
        __m256d s[FOUR];
        for (size_t i = 0; i < FOUR; i++) {
            s[i] = load_four(sites + i * site, precision);
            __builtin_prefetch(sites + (2 * FOUR + i) * site);
        }
        __m256d a = _mm256_unpacklo_pd(s[0], s[1]), b = _mm256_unpackhi_pd(s[0], s[1]);
        __m256d x = _mm256_unpacklo_pd(s[2], s[3]), y = _mm256_unpackhi_pd(s[2], s[3]);
        double *out = tile + c * TILE_PITCH;
        _mm256_storeu_pd(out, _mm256_permute2f128_pd(a, x, FIRST_HALVES));
        _mm256_storeu_pd(out + TILE_PITCH, _mm256_permute2f128_pd(b, y, FIRST_HALVES));
        _mm256_storeu_pd(out + 2 * TILE_PITCH, _mm256_permute2f128_pd(a, x, SECOND_HALVES));
        _mm256_storeu_pd(out + 3 * TILE_PITCH, _mm256_permute2f128_pd(b, y, SECOND_HALVES));
    }
}

AVX2_INLINE void unpack_by_fours(double *tile, const unsigned char *at, unsigned count,
                                 const unsigned char *next, unsigned precision)
{
    size_t site = (size_t)LIMEFILE_SITE_REALS * (precision / 8);
    unsigned i = 0;
    for (; i + FOUR <= count; i += FOUR)
        unpack_four_sites(tile + i, at + i * site, precision);
    unpack_plain(tile + i, at + i * site, count - i, next, precision);
}

AVX2 static void unpack_avx2(double *tile, const unsigned char *at, unsigned count,
                             const unsigned char *next, unsigned precision)
{
    if (precision == 64)
        unpack_by_fours(tile, at, count, next, 64);
    else
        unpack_by_fours(tile, at, count, next, 32);
}

#endif

void tile_unpack(double *tile, const void *sites, unsigned count, const void *next,
                 unsigned precision)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        unpack_avx2(tile, sites, count, next, precision);
        return;
    }
#endif
    unpack_plain(tile, sites, count, next, precision);
}

/* ---- arithmetic ---- */

#define INLINE static inline __attribute__((always_inline))

/* The entry in row `a` and column `b` of the matrix m of site i. */
#define RE(m, a, b) (m)[(size_t)(ROW * (a) + 2 * (b)) * TILE_PITCH + i]
#define IM(m, a, b) (m)[(size_t)(ROW * (a) + 2 * (b) + 1) * TILE_PITCH + i]

#define LINK(tile, mu) ((tile) + (mu)*LIMEFILE_LINK_REALS * TILE_PITCH)

/* Adds Re tr(u v (w x)^+) of each site i to out[i], for `groups` groups of LANES sites. */
INLINE void add_loop(const double *restrict u, const double *restrict v,
                     const double *restrict w, const double *restrict x, unsigned groups,
                     double *restrict out)
{
    EACH_SITE(i, (size_t)groups * LANES)
    {
        double sum = 0;
#pragma GCC unroll 3
        for (int a = 0; a < 3; a++)
#pragma GCC unroll 3
            for (int b = 0; b < 3; b++) {
                double p_re = 0, p_im = 0, q_re = 0, q_im = 0;
#pragma GCC unroll 3
                for (int c = 0; c < 3; c++) {
                    p_re += RE(u, a, c) * RE(v, c, b) - IM(u, a, c) * IM(v, c, b);
                    p_im += RE(u, a, c) * IM(v, c, b) + IM(u, a, c) * RE(v, c, b);
                    q_re += RE(w, a, c) * RE(x, c, b) - IM(w, a, c) * IM(x, c, b);
                    q_im += RE(w, a, c) * IM(x, c, b) + IM(w, a, c) * RE(x, c, b);
                }
                sum += p_re * q_re + p_im * q_im;
            }
        out[i] += sum;
    }
}

#define LARGER(a, b) ((a) > (b) ? (a) : (b))

/* For the link u of each site i: raises unitarity[i] to the largest |entry of u u^+ - 1|^2 and
 * determinant[i] to |det u - 1|^2, unless they are larger already, and adds the squares to
 * square[i]. u u^+ is Hermitian, so only its lower triangle is computed. */
INLINE void add_deviation(const double *restrict u, unsigned groups, double *restrict unitarity,
                          double *restrict determinant, double *restrict square)
{
    EACH_SITE(i, (size_t)groups * LANES)
    {
        double largest = 0;
#pragma GCC unroll 3
        for (int a = 0; a < 3; a++)
#pragma GCC unroll 3
            for (int b = 0; b <= a; b++) {
                double re = a == b ? -1 : 0, im = 0;
#pragma GCC unroll 3
                for (int c = 0; c < 3; c++) {
                    re += RE(u, a, c) * RE(u, b, c) + IM(u, a, c) * IM(u, b, c);
                    if (a != b)
                        im += IM(u, a, c) * RE(u, b, c) - RE(u, a, c) * IM(u, b, c);
                }
                re = re * re + im * im;
                largest = LARGER(re, largest);
                square[i] += re;
            }
        unitarity[i] = LARGER(largest, unitarity[i]);
    }
    EACH_SITE(i, (size_t)groups * LANES)
    {
        double re = -1, im = 0;
#pragma GCC unroll 3
        for (int a = 0; a < 3; a++) {
            int b = (a + 1) % 3, c = (a + 2) % 3;
            double x = RE(u, 1, b) * RE(u, 2, c) - IM(u, 1, b) * IM(u, 2, c) -
                       (RE(u, 1, c) * RE(u, 2, b) - IM(u, 1, c) * IM(u, 2, b));
            double y = RE(u, 1, b) * IM(u, 2, c) + IM(u, 1, b) * RE(u, 2, c) -
                       (RE(u, 1, c) * IM(u, 2, b) + IM(u, 1, c) * RE(u, 2, b));
            re += RE(u, 0, a) * x - IM(u, 0, a) * y;
            im += RE(u, 0, a) * y + IM(u, 0, a) * x;
        }
        re = re * re + im * im;
        determinant[i] = LARGER(re, determinant[i]);
        square[i] += re;
    }
}

INLINE void add_trace(const double *restrict u, unsigned groups, double *restrict out)
{
    EACH_SITE(i, (size_t)groups * LANES)
    out[i] += RE(u, 0, 0) + RE(u, 1, 1) + RE(u, 2, 2);
}

/* The results for each site of a tile, as in struct tile_sums. */
struct lanes {
    double space[TILE_SITES], time[TILE_SITES], trace[TILE_SITES];
    double unitarity[TILE_SITES], determinant[TILE_SITES], square[TILE_SITES];
};

/* Returns the sum of the first `count` sites' values, and overwrites lane. Adds the upper half
 * to the lower half until one value is left, so vectors of any length give the same result. */
INLINE double add_halves(double *lane, unsigned count)
{
    for (unsigned i = count; i < TILE_SITES; i++)
        lane[i] = 0;
    for (unsigned half = TILE_SITES / 2; half; half /= 2)
        for (unsigned i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

INLINE double largest_of_lanes(const double *lane, unsigned count)
{
    double largest = 0;
    for (unsigned i = 0; i < count; i++)
        largest = LARGER(lane[i], largest);
    return largest;
}

static void sum_lanes(struct lanes *l, unsigned count, struct tile_sums *out)
{
    out->finite = true;
    for (unsigned i = 0; i < count; i++)
        out->finite &= l->square[i] - l->square[i] == 0;
    out->space_plaquettes = add_halves(l->space, count);
    out->time_plaquettes = add_halves(l->time, count);
    out->trace = add_halves(l->trace, count);
    out->unitarity = largest_of_lanes(l->unitarity, count);
    out->determinant = largest_of_lanes(l->determinant, count);
    out->largest_square = largest_of_lanes(l->square, count);
}

INLINE void measure_tile(const double *tile, const double *const next[3], unsigned count,
                         struct tile_sums *out)
{
    struct lanes l;
    unsigned groups = (count + LANES - 1) / LANES;
    memset(&l, 0, sizeof l);
    for (unsigned nu = 1; next && nu < 4; nu++)
        for (unsigned mu = 0; mu < nu; mu++) {
            const double *at_mu = mu ? next[mu - 1] : tile + 1;
            add_loop(LINK(tile, mu), LINK(at_mu, nu), LINK(tile, nu), LINK(next[nu - 1], mu),
                     groups, nu == 3 ? l.time : l.space);
        }
    for (unsigned mu = 0; mu < 4; mu++) {
        add_trace(LINK(tile, mu), groups, l.trace);
        add_deviation(LINK(tile, mu), groups, l.unitarity, l.determinant, l.square);
    }
    sum_lanes(&l, count, out);
}

/* ---- code for each processor ---- */

void tile_measure_plain(const double *tile, const double *const next[3], unsigned count,
                        struct tile_sums *out)
{
    measure_tile(tile, next, count, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void measure_avx2(const double *tile,
                                                         const double *const next[3],
                                                         unsigned count, struct tile_sums *out)
{
    measure_tile(tile, next, count, out);
}
#endif

tile_measure_fn *tile_measure_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return measure_avx2;
#endif
    return tile_measure_plain;
}
