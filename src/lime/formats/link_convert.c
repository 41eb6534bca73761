/* link_convert.c - convert links between forms, and compute the checksums of NERSC and MILC
 *
 * Compilers can vectorize the loops over numbers. On x86-64 each loop has clones for several
 * generations of processors, and the dynamic loader selects one. A double that is too large for
 * a float becomes an infinity of the same sign; a NaN remains a NaN. */
#include "gauge.h"

static const bool host_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

enum {
    TWO_ROWS = 12, /* real numbers in two rows of a link */
};

/* Builds with a sanitizer have no clones: its runtime starts after the loader selects one. */
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ && defined __OPTIMIZE__ && \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ && !defined LIMEFS_ONE_CLONE
#if __GNUC__ >= 12
#define KERNEL __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define KERNEL __attribute__((target_clones("default", "avx2")))
#endif
#else
#define KERNEL
#endif

/* ---- numbers ---- */

#define SAME(x) (x)

#define SWAP_KERNEL(name, type, swap)                                \
    KERNEL static void name(void *out, const void *in, size_t count) \
    {                                                                \
        unsigned char *to = out;                                     \
        const unsigned char *from = in;                              \
        for (size_t i = 0; i < count; i++) {                         \
            type x;                                                  \
            memcpy(&x, from + i * sizeof x, sizeof x);               \
            x = swap(x);                                             \
            memcpy(to + i * sizeof x, &x, sizeof x);                 \
        }                                                            \
    }

#define CONVERT_KERNEL(name, in_bits, in_real, in_swap, out_bits, out_real, out_swap) \
    KERNEL static void name(void *out, const void *in, size_t count)                  \
    {                                                                                 \
        unsigned char *to = out;                                                      \
        const unsigned char *from = in;                                               \
        for (size_t i = 0; i < count; i++) {                                          \
            in_bits x;                                                                \
            in_real a;                                                                \
            out_bits y;                                                               \
            memcpy(&x, from + i * sizeof x, sizeof x);                                \
            x = in_swap(x);                                                           \
            memcpy(&a, &x, sizeof a);                                                 \
            out_real b = (out_real)a;                                                 \
            memcpy(&y, &b, sizeof y);                                                 \
            y = out_swap(y);                                                          \
            memcpy(to + i * sizeof y, &y, sizeof y);                                  \
        }                                                                             \
    }

#define NARROW_KERNEL(name, in_swap, out_swap) \
    CONVERT_KERNEL(name, uint64_t, double, in_swap, uint32_t, float, out_swap)
#define WIDEN_KERNEL(name, in_swap, out_swap) \
    CONVERT_KERNEL(name, uint32_t, float, in_swap, uint64_t, double, out_swap)

SWAP_KERNEL(swap_32, uint32_t, __builtin_bswap32)
SWAP_KERNEL(swap_64, uint64_t, __builtin_bswap64)
NARROW_KERNEL(narrow, SAME, SAME)
NARROW_KERNEL(narrow_out, SAME, __builtin_bswap32)
NARROW_KERNEL(narrow_in, __builtin_bswap64, SAME)
NARROW_KERNEL(narrow_both, __builtin_bswap64, __builtin_bswap32)
WIDEN_KERNEL(widen, SAME, SAME)
WIDEN_KERNEL(widen_out, SAME, __builtin_bswap64)
WIDEN_KERNEL(widen_in, __builtin_bswap32, SAME)
WIDEN_KERNEL(widen_both, __builtin_bswap32, __builtin_bswap64)

static void same_32(void *out, const void *in, size_t count)
{
    memmove(out, in, 4 * count);
}

static void same_64(void *out, const void *in, size_t count)
{
    memmove(out, in, 8 * count);
}

limefile_convert_fn *limefile_find_converter(unsigned from, bool from_little, unsigned to,
                                             bool to_little)
{
    static limefile_convert_fn *const narrows[2][2] = {{narrow, narrow_out},
                                                       {narrow_in, narrow_both}};
    static limefile_convert_fn *const widens[2][2] = {{widen, widen_out},
                                                      {widen_in, widen_both}};
    bool swap_in = from_little != host_little, swap_out = to_little != host_little;
    if (from == to && from_little == to_little)
        return from == 64 ? same_64 : same_32;
    if (from == to)
        return from == 64 ? swap_64 : swap_32;
    return from == 64 ? narrows[swap_in][swap_out] : widens[swap_in][swap_out];
}

/* ---- links ---- */

size_t links_bytes(const struct links_form *form)
{
    return (size_t)form->rows * 6 * (form->precision / 8);
}

struct links_form links_ildg(unsigned precision)
{
    return (struct links_form){.precision = precision, .rows = 3};
}

void links_reals(const void *in, unsigned precision, double out[LIMEFILE_LINK_REALS])
{
    limefile_find_converter(precision, false, 64, host_little)(out, in, LIMEFILE_LINK_REALS);
}

/* Appends the third row: the complex conjugate of the cross product of the two rows. */
static void add_third_row(unsigned char *link, const struct links_form *form)
{
    double row[LIMEFILE_LINK_REALS];
    limefile_find_converter(form->precision, form->little, 64, host_little)(row, link,
                                                                            TWO_ROWS);
    for (unsigned c = 0; c < 3; c++) {
        const double *a1 = row + (c + 1) % 3 * 2, *a2 = row + (c + 2) % 3 * 2;
        const double *b1 = a1 + 6, *b2 = a2 + 6;
        row[12 + 2 * c] = a1[0] * b2[0] - a1[1] * b2[1] - (a2[0] * b1[0] - a2[1] * b1[1]);
        row[13 + 2 * c] = -(a1[0] * b2[1] + a1[1] * b2[0] - (a2[0] * b1[1] + a2[1] * b1[0]));
    }
    limefile_find_converter(64, host_little, form->precision,
                            form->little)(link + (size_t)TWO_ROWS * (form->precision / 8),
                                          row + TWO_ROWS, LIMEFILE_LINK_REALS - TWO_ROWS);
}

/* Can expand two rows to three in place if `in` and `out` end at the same byte, because the
 * loop then reads each number before it overwrites the number. */
void links_convert(const struct links_form *from, const void *in, const struct links_form *to,
                   void *out, size_t count)
{
    limefile_convert_fn *convert =
        limefile_find_converter(from->precision, from->little, to->precision, to->little);
    const unsigned char *source = in;
    unsigned char *target = out;
    if (from->rows == to->rows) {
        convert(out, in, count * from->rows * 6);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        convert(target, source, TWO_ROWS);
        if (to->rows == 3)
            add_third_row(target, to);
        source += links_bytes(from);
        target += links_bytes(to);
    }
}

/* ---- checksums ---- */

#define SUM_KERNEL(name, swap)                                            \
    KERNEL static uint32_t name(const unsigned char *bytes, size_t words) \
    {                                                                     \
        uint32_t sum = 0, word;                                           \
        for (size_t i = 0; i < words; i++) {                              \
            memcpy(&word, bytes + 4 * i, 4);                              \
            sum += swap(word);                                            \
        }                                                                 \
        return sum;                                                       \
    }

SUM_KERNEL(sum_same, SAME)
SUM_KERNEL(sum_swapped, __builtin_bswap32)

uint32_t links_sum(const void *data, size_t words, bool little)
{
    return little == host_little ? sum_same(data, words) : sum_swapped(data, words);
}

static uint32_t rotate(uint32_t value, unsigned by)
{
    return by ? value << by | value >> (32 - by) : value;
}

/* MILC rotates the k-th word by k mod PERIOD bits and combines all words with exclusive or. The
 * loops first combine words with the same rotation, and then rotate each result once. */
#define XOR_ROTATED(NAME, PERIOD)                                                         \
    static uint32_t NAME(const unsigned char *bytes, size_t words, bool swap, uint64_t k) \
    {                                                                                     \
        uint32_t row[PERIOD] = {0}, sum = 0, word;                                        \
        size_t i = 0;                                                                     \
        for (; i + PERIOD <= words; i += PERIOD)                                          \
            for (unsigned j = 0; j < PERIOD; j++) {                                       \
                memcpy(&word, bytes + 4 * (i + j), 4);                                    \
                row[j] ^= word;                                                           \
            }                                                                             \
        for (unsigned j = 0; i < words; i++, j++) {                                       \
            memcpy(&word, bytes + 4 * i, 4);                                              \
            row[j] ^= word;                                                               \
        }                                                                                 \
        for (unsigned j = 0; j < PERIOD; j++)                                             \
            sum ^= rotate(swap ? __builtin_bswap32(row[j]) : row[j],                      \
                          (unsigned)((k + j) % PERIOD));                                  \
        return sum;                                                                       \
    }

XOR_ROTATED(xor_rotated_29, 29)
XOR_ROTATED(xor_rotated_31, 31)

void links_xor(const void *data, size_t words, bool little, uint64_t k, uint32_t *sum29,
               uint32_t *sum31)
{
    bool swap = little != host_little;
    *sum29 ^= xor_rotated_29(data, words, swap, k);
    *sum31 ^= xor_rotated_31(data, words, swap, k);
}
