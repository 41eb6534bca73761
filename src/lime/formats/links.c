/* links.c - links from one form into another */
#include "links.h"

#include <byteswap.h>

static const bool host_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

size_t links_bytes(const struct links_form *form)
{
    return (size_t)form->rows * 6 * (form->precision / 8);
}

struct links_form links_ildg(unsigned precision)
{
    return (struct links_form){.precision = precision, .rows = 3};
}

/* ---- numbers ---- */

#define INLINE static inline __attribute__((always_inline))

/* Loops over numbers, of which the compiler makes vectors: `swap` is known where they are used.
 */
INLINE uint32_t take32(const unsigned char *in, bool swap)
{
    uint32_t word;
    memcpy(&word, in, sizeof word);
    return swap ? bswap_32(word) : word;
}

INLINE uint64_t take64(const unsigned char *in, bool swap)
{
    uint64_t word;
    memcpy(&word, in, sizeof word);
    return swap ? bswap_64(word) : word;
}

INLINE double real_get(const unsigned char *in, unsigned precision, bool swap)
{
    uint64_t bits;
    uint32_t narrow_bits;
    double value;
    float narrow;
    if (precision == 64) {
        bits = take64(in, swap);
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    narrow_bits = take32(in, swap);
    memcpy(&narrow, &narrow_bits, sizeof narrow);
    return (double)narrow;
}

INLINE void real_put(double value, unsigned char *out, unsigned precision, bool swap)
{
    uint64_t bits;
    uint32_t narrow_bits;
    float narrow = (float)value;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
    bits = swap ? bswap_64(bits) : bits;
    narrow_bits = swap ? bswap_32(narrow_bits) : narrow_bits;
    if (precision == 64)
        memcpy(out, &bits, sizeof bits);
    else
        memcpy(out, &narrow_bits, sizeof narrow_bits);
}

/* Two rows are spread in place: each number is read before anything is written behind it. */
INLINE void copy_swapped(const unsigned char *in, unsigned char *out, unsigned precision,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (precision == 64) {
            uint64_t word = take64(in + 8 * i, true);
            memcpy(out + 8 * i, &word, sizeof word);
        } else {
            uint32_t word = take32(in + 4 * i, true);
            memcpy(out + 4 * i, &word, sizeof word);
        }
}

INLINE void copy_rounded(const unsigned char *in, unsigned from, bool swap_in,
                         unsigned char *out, unsigned to, bool swap_out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        real_put(real_get(in + i * (from / 8), from, swap_in), out + i * (to / 8), to,
                 swap_out);
}

/* The cases that there are, each with a loop of its own. */
INLINE void copy_any(const unsigned char *in, const struct links_form *from, unsigned char *out,
                     const struct links_form *to, size_t n)
{
    bool swap_in = from->little != host_little, swap_out = to->little != host_little;
    if (from->precision == to->precision && from->precision == 64)
        copy_swapped(in, out, 64, n);
    else if (from->precision == to->precision)
        copy_swapped(in, out, 32, n);
    else if (from->precision == 64 && swap_in && swap_out)
        copy_rounded(in, 64, true, out, 32, true, n);
    else if (from->precision == 64 && swap_in)
        copy_rounded(in, 64, true, out, 32, false, n);
    else if (from->precision == 64)
        copy_rounded(in, 64, false, out, 32, swap_out, n);
    else if (swap_in && swap_out)
        copy_rounded(in, 32, true, out, 64, true, n);
    else if (swap_in)
        copy_rounded(in, 32, true, out, 64, false, n);
    else
        copy_rounded(in, 32, false, out, 64, swap_out, n);
}

static void copy_plain(const unsigned char *in, const struct links_form *from,
                       unsigned char *out, const struct links_form *to, size_t n)
{
    copy_any(in, from, out, to, n);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void copy_avx2(const unsigned char *in,
                                                      const struct links_form *from,
                                                      unsigned char *out,
                                                      const struct links_form *to, size_t n)
{
    copy_any(in, from, out, to, n);
}
#endif

static void copy_reals(const unsigned char *in, const struct links_form *from,
                       unsigned char *out, const struct links_form *to, size_t n)
{
    if (from->precision == to->precision && from->little == to->little) {
        memmove(out, in, n * (from->precision / 8));
        return;
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        copy_avx2(in, from, out, to, n);
        return;
    }
#endif
    copy_plain(in, from, out, to, n);
}

void links_reals(const void *in, unsigned precision, size_t reals, double *out)
{
    const unsigned char *at = in;
    for (size_t i = 0; i < reals; i++)
        out[i] = real_get(at + i * (precision / 8), precision, host_little);
}

/* ---- rows ---- */

/* conj(first x second), behind them. */
static void third_row(unsigned char *link, const struct links_form *form)
{
    double row[LIMEFILE_LINK_REALS];
    unsigned bytes = form->precision / 8;
    bool swap = form->little != host_little;
    for (unsigned i = 0; i < LINKS_TWO_ROWS; i++)
        row[i] = real_get(link + (size_t)i * bytes, form->precision, swap);
    for (unsigned c = 0; c < 3; c++) {
        const double *a1 = row + (c + 1) % 3 * 2, *a2 = row + (c + 2) % 3 * 2;
        const double *b1 = a1 + 6, *b2 = a2 + 6;
        row[12 + 2 * c] = a1[0] * b2[0] - a1[1] * b2[1] - (a2[0] * b1[0] - a2[1] * b1[1]);
        row[13 + 2 * c] = -(a1[0] * b2[1] + a1[1] * b2[0] - (a2[0] * b1[1] + a2[1] * b1[0]));
    }
    for (unsigned i = LINKS_TWO_ROWS; i < LIMEFILE_LINK_REALS; i++)
        real_put(row[i], link + (size_t)i * bytes, form->precision, swap);
}

void links_convert(const struct links_form *from, const void *in, const struct links_form *to,
                   void *out, size_t count)
{
    const unsigned char *source = in;
    unsigned char *target = out;
    if (from->rows == to->rows) {
        copy_reals(source, from, target, to, count * from->rows * 6);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        copy_reals(source, from, target, to, LINKS_TWO_ROWS);
        if (to->rows == 3)
            third_row(target, to);
        source += links_bytes(from);
        target += links_bytes(to);
    }
}
