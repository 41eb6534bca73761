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

static void copy32(const unsigned char *in, unsigned char *out, size_t n, bool swap)
{
    if (!swap) {
        memmove(out, in, n * 4); /* two rows are spread in place */
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t word;
        memcpy(&word, in + 4 * i, 4);
        word = bswap_32(word);
        memcpy(out + 4 * i, &word, 4);
    }
}

static void copy64(const unsigned char *in, unsigned char *out, size_t n, bool swap)
{
    if (!swap) {
        memmove(out, in, n * 8);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t word;
        memcpy(&word, in + 8 * i, 8);
        word = bswap_64(word);
        memcpy(out + 8 * i, &word, 8);
    }
}

static double real_get(const unsigned char *in, unsigned precision, bool swap)
{
    double value;
    float narrow;
    if (precision == 64) {
        copy64(in, (unsigned char *)&value, 1, swap);
        return value;
    }
    copy32(in, (unsigned char *)&narrow, 1, swap);
    return (double)narrow;
}

static void real_put(double value, unsigned char *out, unsigned precision, bool swap)
{
    float narrow = (float)value;
    if (precision == 64)
        copy64((const unsigned char *)&value, out, 1, swap);
    else
        copy32((const unsigned char *)&narrow, out, 1, swap);
}

static void copy_reals(const unsigned char *in, const struct links_form *from,
                       unsigned char *out, const struct links_form *to, size_t n)
{
    bool swap_in = from->little != host_little, swap_out = to->little != host_little;
    if (from->precision == to->precision && from->precision == 64)
        copy64(in, out, n, swap_in != swap_out);
    else if (from->precision == to->precision)
        copy32(in, out, n, swap_in != swap_out);
    else
        for (size_t i = 0; i < n; i++)
            real_put(real_get(in + i * (from->precision / 8), from->precision, swap_in),
                     out + i * (to->precision / 8), to->precision, swap_out);
}

void links_reals(const void *in, unsigned precision, size_t reals, double *out)
{
    const unsigned char *at = in;
    if (precision == 64)
        copy64(at, (unsigned char *)out, reals, host_little);
    else
        for (size_t i = 0; i < reals; i++)
            out[i] = real_get(at + 4 * i, 32, host_little);
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
