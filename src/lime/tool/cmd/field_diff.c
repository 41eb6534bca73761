/* field_diff.c - compare the data of two fields, number by number */
#define _GNU_SOURCE
#include "field_diff.h"
#include "limegauge.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_NUMBERS = 1 << 18 }; /* numbers that are read and compared at a time */

/* ---- what is compared ---- */

static bool has_numbers(const struct limefile_field *f)
{
    return (f->precision == 32 || f->precision == 64) && limefile_field_is_summable(f) &&
           f->sites && f->site_bytes % (f->precision / 8) == 0;
}

/* Gives a field without a description that of a field of the same length. */
static void adopt_description(struct limefile_field *f, const struct limefile_field *other)
{
    struct limefile_record own = f->record;
    if (f->precision || !has_numbers(other) || own.bytes != other->record.bytes)
        return;
    *f = *other;
    f->record = own;
}

/* Returns true if both fields have the same sites, as far as their descriptions state them. */
static bool sites_agree(const struct limefile_field *a, const struct limefile_field *b)
{
    size_t bytes = a->lattice.dims * sizeof *a->lattice.extent;
    if (!a->lattice.dims || !b->lattice.dims)
        return true;
    return a->lattice.dims == b->lattice.dims && a->is_box == b->is_box &&
           memcmp(a->lattice.extent, b->lattice.extent, bytes) == 0 &&
           (!a->is_box ||
            (memcmp(a->lower, b->lower, bytes) == 0 && memcmp(a->upper, b->upper, bytes) == 0));
}

/* Returns true if the numbers of a site have the same order. A shape that is not known is that
 * of the other field, if both have the same number of numbers. */
static bool orders_agree(struct limefile_siteshape *shape, const struct limefile_siteshape *b)
{
    bool agree = shape->dims == b->dims;
    for (unsigned i = 0; agree && i < b->dims; i++)
        agree = shape->extent[i] == b->extent[i] && strcmp(shape->name[i], b->name[i]) == 0;
    agree = agree || !shape->known || !b->known;
    if (!shape->known)
        *shape = *b;
    return agree;
}

static const char *find_mismatch(struct field_diff *d)
{
    const struct limefile_field *a = &d->field[0], *b = &d->field[1];
    struct limefile_siteshape other;
    if (d->only)
        return "only one file has it";
    if (!sites_agree(a, b))
        return "the lattices differ";
    if (!d->has_numbers)
        return a->record.bytes == b->record.bytes ? NULL : "the lengths differ";
    if (a->sites != b->sites)
        return "the numbers of sites differ";
    if (a->site_bytes / d->unit[0] != b->site_bytes / d->unit[1])
        return "a site has not as many numbers in both";
    limefile_siteshape_derive(a, &d->shape);
    limefile_siteshape_derive(b, &other);
    return orders_agree(&d->shape, &other) ? NULL : "the numbers of a site have another order";
}

void field_diff_prepare(struct field_diff *d)
{
    struct limefile_field *a = &d->field[0], *b = &d->field[1];
    limefile_field_layout(a, 0, a);
    limefile_field_layout(b, 0, b);
    adopt_description(a, b);
    adopt_description(b, a);
    d->has_numbers = has_numbers(a) && has_numbers(b);
    for (int i = 0; i < 2; i++)
        d->unit[i] = d->has_numbers ? d->field[i].precision / 8 : 1;
    d->count = a->record.bytes / d->unit[0];
    d->per_site = d->has_numbers ? a->site_bytes / d->unit[0] : 1;
    d->mismatch = find_mismatch(d);
}

/* ---- comparing ---- */

/* A part of both fields: the bytes as stored, and the numbers. */
struct part {
    unsigned char *raw[2];
    double *real[2];
};

/* For one precision, compares the stored bytes, because a conversion changes a signalling NaN.
 */
static bool bits_are_equal(const struct field_diff *d, const struct part *p, size_t i)
{
    size_t unit = d->unit[0];
    if (unit == d->unit[1])
        return memcmp(p->raw[0] + i * unit, p->raw[1] + i * unit, unit) == 0;
    return memcmp(&p->real[0][i], &p->real[1][i], sizeof(double)) == 0;
}

/* Compares n numbers of one site, which begin at `from` of a part; first: the part's number in
 * the field. */
static void compare_site(struct field_diff *d, const struct part *p, uint64_t first,
                         size_t from, size_t n)
{
    double scale = 0, most = -1;
    size_t at = 0;
    for (int side = 0; side < 2; side++)
        for (size_t i = from; i < from + n; i++) {
            double size = fabs(p->real[side][i]);
            if (size > scale && size <= DBL_MAX)
                scale = size;
        }
    /* Numbers near the smallest float lose more than the others. */
    double tolerance = d->bound * scale + (d->unit[0] == d->unit[1] ? 0 : FLT_TRUE_MIN);
    for (size_t i = from; i < from + n; i++) {
        if (bits_are_equal(d, p, i))
            continue;
        double difference = fabs(p->real[0][i] - p->real[1][i]);
        if (!(difference <= DBL_MAX)) /* a NaN */
            difference = HUGE_VAL;
        d->unequal++;
        d->beyond += d->bound < 0 || difference > tolerance;
        if (difference > most) {
            most = difference;
            at = i;
        }
    }
    double relative = most > 0 ? most / scale : most;
    if (relative > d->largest.relative)
        d->largest = (struct field_diff_place){
            first + at, {p->real[0][at], p->real[1][at]}, most, relative};
}

static void compare_numbers(struct field_diff *d, const struct part *p, uint64_t first,
                            size_t n)
{
    for (int side = 0; side < 2; side++)
        limefile_find_converter(8 * (unsigned)d->unit[side], false, 64,
                                __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)(p->real[side],
                                                                           p->raw[side], n);
    size_t step = d->per_site < n ? (size_t)d->per_site : n;
    for (size_t i = 0; i < n; i += step)
        compare_site(d, p, first, i, step < n - i ? step : n - i);
}

static void compare_bytes(struct field_diff *d, const struct part *p, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p->raw[0][i] == p->raw[1][i])
            continue;
        if (d->unequal == 0)
            d->largest.number = first + i;
        d->unequal++;
        d->beyond++;
    }
}

/* Reads n numbers of both fields from the number `first` on, and compares them. */
static int compare_part(struct field_diff *d, const struct part *p, uint64_t first, size_t n,
                        int *which)
{
    for (int side = 0; side < 2; side++) {
        size_t bytes = n * d->unit[side];
        int err =
            limefile_read_exact(d->source[side], p->raw[side], bytes,
                                d->field[side].record.data_offset + first * d->unit[side]);
        *which = side;
        if (err)
            return err;
        d->progress(d->context, bytes);
    }
    if (d->unit[0] == d->unit[1] && memcmp(p->raw[0], p->raw[1], n * d->unit[0]) == 0)
        return 0;
    if (d->has_numbers)
        compare_numbers(d, p, first, n);
    else
        compare_bytes(d, p, first, n);
    return 0;
}

int field_diff_run(struct field_diff *d, int *which)
{
    /* Whole sites, as long as they are not extremely long. */
    size_t most =
        d->per_site < PART_NUMBERS ? PART_NUMBERS - PART_NUMBERS % d->per_site : PART_NUMBERS;
    size_t bytes = most * sizeof(double);
    unsigned char *memory = malloc(4 * bytes);
    struct part p = {{memory, memory + bytes},
                     {(double *)(memory + 2 * bytes), (double *)(memory + 3 * bytes)}};
    int err = memory ? 0 : -ENOMEM;
    d->largest.relative = -1;
    for (uint64_t at = 0; !err && at < d->count && !(d->stops_early && d->beyond);) {
        size_t n = d->count - at < most ? (size_t)(d->count - at) : most;
        err = compare_part(d, &p, at, n, which);
        at += n;
    }
    free(memory);
    return err;
}

/* ---- places ---- */

unsigned field_diff_locate(const struct field_diff *d, uint64_t number,
                           uint64_t site[LIMEFILE_DIMS_MAX],
                           uint64_t subscript[LIMEFILE_SITE_DIMS_MAX], int *part)
{
    const struct limefile_field *f = &d->field[d->field[0].lattice.dims == 0];
    uint64_t rest = number / d->per_site, index = number % d->per_site;
    for (unsigned i = 0; i < f->lattice.dims; i++) {
        uint64_t extent = f->is_box ? f->upper[i] - f->lower[i] + 1 : f->lattice.extent[i];
        site[i] = rest % extent + (f->is_box ? f->lower[i] : 0);
        rest /= extent;
    }
    *part = d->shape.complex ? (int)(index % 2) : -1;
    index /= d->shape.complex ? 2 : 1;
    for (unsigned i = d->shape.dims; i-- > 0;) {
        subscript[i] = index % d->shape.extent[i];
        index /= d->shape.extent[i];
    }
    return f->lattice.dims;
}

void field_diff_format_place(const struct field_diff *d, uint64_t number,
                             char text[FIELD_DIFF_PLACE_MAX])
{
    static const char *const parts[] = {"real part", "imaginary part"};
    uint64_t site[LIMEFILE_DIMS_MAX], subscript[LIMEFILE_SITE_DIMS_MAX];
    const struct limefile_siteshape *s = &d->shape;
    int part, used = 0;
    if (!d->has_numbers) {
        snprintf(text, FIELD_DIFF_PLACE_MAX, "byte %" PRIu64, number);
        return;
    }
    unsigned dims = field_diff_locate(d, number, site, subscript, &part);
    for (unsigned i = 0; i < dims; i++)
        used += sprintf(text + used, "%s%" PRIu64, i ? " " : "site ", site[i]);
    for (unsigned i = 0; i < s->dims; i++) {
        const char *comma = used ? ", " : "";
        if (dims == 4 && s->extent[i] == 4 && strcmp(s->name[i], "mu") == 0)
            used += sprintf(text + used, "%sdirection %c", comma, "xyzt"[subscript[i]]);
        else
            used += sprintf(text + used, "%s%s %" PRIu64, comma, s->name[i], subscript[i]);
    }
    if (part >= 0)
        sprintf(text + used, "%s%s", used ? ", " : "", parts[part]);
}
