/* field_diff.c - compare the data of two fields, number by number */
#define _GNU_SOURCE
#include "field_diff.h"
#include "limegauge.h"
#include "threads.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PART_NUMBERS = 1 << 17, /* numbers that are read and compared at a time */
    THREADS_MIN = 4,        /* keep the disk busy */
};

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
    char *buffer[2];
    const char *raw[2]; /* in `buffer` */
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

/* ---- threads, each of which reads and compares a part at a time ---- */

struct comparison {
    struct field_diff *d;    /* its results are those of the threads that have ended */
    struct field_diff start; /* without results */
    int fd[2], direct[2];    /* descriptors of the files; `direct` has O_DIRECT; -1: none */
    size_t most;             /* numbers of a part */
    size_t buffer_bytes;
    pthread_mutex_t lock; /* of the members of d and those below */
    uint64_t next;        /* first number that no thread has taken */
    int err, which;       /* the first error, and the number of the field */
};

/* Takes the next part. done: bytes that the thread has read since the last call. */
static bool take_part(struct comparison *c, size_t done, uint64_t *first, size_t *n)
{
    pthread_mutex_lock(&c->lock);
    if (done)
        c->d->progress(c->d->context, done);
    uint64_t left = c->d->count - c->next;
    *first = c->next;
    *n = left < c->most ? (size_t)left : c->most;
    c->next += *n;
    pthread_mutex_unlock(&c->lock);
    return *n > 0;
}

/* Ends the comparison. */
static void stop_comparison(struct comparison *c, int err, int which)
{
    pthread_mutex_lock(&c->lock);
    c->next = c->d->count;
    if (!c->err) {
        c->err = err;
        c->which = which;
    }
    pthread_mutex_unlock(&c->lock);
}

/* Reads n numbers of a field. Bytes that are not in the page cache are read by direct I/O. */
static int read_part(const struct comparison *c, int side, uint64_t first, size_t n,
                     struct part *p)
{
    const struct field_diff *d = c->d;
    size_t bytes = n * d->unit[side];
    uint64_t offset = d->field[side].record.data_offset + first * d->unit[side];
    p->raw[side] = p->buffer[side];
    if (c->direct[side] >= 0 && !limefile_is_cached(c->fd[side], offset, bytes) &&
        limefile_read_direct(c->direct[side], p->buffer[side], bytes, offset, &p->raw[side]) ==
            (ssize_t)bytes)
        return 0;
    p->raw[side] = p->buffer[side];
    return limefile_read_exact(d->source[side], p->buffer[side], bytes, offset);
}

/* Adds the results of a thread. */
static void merge_results(struct field_diff *d, const struct field_diff *more)
{
    const struct field_diff_place *a = &d->largest, *b = &more->largest;
    if (more->unequal && (!d->unequal || b->relative > a->relative ||
                          (b->relative == a->relative && b->number < a->number)))
        d->largest = *b;
    d->unequal += more->unequal;
    d->beyond += more->beyond;
}

static int compare_parts(struct comparison *c, struct field_diff *own, struct part *p)
{
    uint64_t first;
    size_t n, done = 0;
    while (take_part(c, done, &first, &n)) {
        for (int side = 0; side < 2; side++) {
            int err = read_part(c, side, first, n, p);
            if (err) {
                stop_comparison(c, err, side);
                return err;
            }
        }
        done = n * (own->unit[0] + own->unit[1]);
        if (own->unit[0] == own->unit[1] && memcmp(p->raw[0], p->raw[1], n * own->unit[0]) == 0)
            continue;
        if (own->has_numbers)
            compare_numbers(own, p, first, n);
        else
            compare_bytes(own, p, first, n);
        if (own->stops_early && own->beyond)
            stop_comparison(c, 0, 0);
    }
    return 0;
}

static void *run_comparison(void *context)
{
    struct comparison *c = context;
    struct field_diff own = c->start;
    size_t bytes = c->buffer_bytes;
    struct part p = {
        .buffer = {limefile_buffer_new(&bytes), limefile_buffer_new(&bytes)},
        .real = {malloc(c->most * sizeof(double)), malloc(c->most * sizeof(double))}};
    if (p.buffer[0] && p.buffer[1] && p.real[0] && p.real[1])
        compare_parts(c, &own, &p);
    else
        stop_comparison(c, -ENOMEM, 0);
    pthread_mutex_lock(&c->lock);
    merge_results(c->d, &own);
    pthread_mutex_unlock(&c->lock);
    for (int side = 0; side < 2; side++) {
        free(p.buffer[side]);
        free(p.real[side]);
    }
    return NULL;
}

int field_diff_run(struct field_diff *d, int *which)
{
    struct comparison c = {.d = d, .most = PART_NUMBERS, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (d->per_site < PART_NUMBERS) /* whole sites, unless they are extremely long */
        c.most -= PART_NUMBERS % d->per_site;
    c.buffer_bytes = c.most * sizeof(double) + 2 * LIMEFILE_DIRECT_ALIGN;
    c.start = *d;
    c.start.largest.relative = -1;
    for (int side = 0; side < 2; side++) {
        c.fd[side] = limefile_source_fd(d->source[side]);
        c.direct[side] = c.fd[side] < 0 ? -1 : limefile_open_direct(c.fd[side]);
    }
    uint64_t parts = d->count / c.most + 1;
    unsigned threads = limefile_processors();
    threads = threads < THREADS_MIN ? THREADS_MIN : threads;
    limefile_run_threads(parts < threads ? (unsigned)parts : threads, run_comparison, &c);
    for (int side = 0; side < 2; side++)
        if (c.direct[side] >= 0)
            close(c.direct[side]);
    *which = c.which;
    return c.err;
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
