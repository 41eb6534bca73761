/* export_compute.c - compute any range of an export's data from ranges of the record */
#include "export.h"

#include <string.h>

enum {
    BUFFER_BYTES = 64 * 1024, /* on the reader's stack; fits into the processor's cache */
};

struct computation {
    const struct export_compute *compute;
    limefile_export_read_fn *read_record;
    void *context;
    const unsigned char *in; /* bytes of the record: in `buffer`, or read_record()'s memory */
    _Alignas(64) unsigned char buffer[BUFFER_BYTES];
};

int export_read_raw(void *buf, size_t n, uint64_t at, limefile_export_read_fn *read_record,
                    void *context)
{
    const void *data = buf;
    ssize_t got = read_record(context, buf, n, at, &data);
    if (got < 0)
        return (int)got;
    if ((size_t)got != n)
        return LIMEFILE_E_SHRUNK;
    if (data != buf)
        memcpy(buf, data, n);
    return 0;
}

/* ---- even sites before odd ones ---- */

/* Divides the sites into blocks of consecutive sites in which parity (of the sum of the
 * coordinates) alternates. A block covers the fastest dimensions (x, y, ...) up to and
 * including the first one with an even extent; if all extents are odd, all sites are one block.
 * From one block to the next, parity changes with the coordinates of the slower dimensions. */
static void evenodd_init(struct export_evenodd *e, const struct export_layout *layout)
{
    const struct limefile_array *a = &layout->array;
    uint64_t block = 1;
    *e = (struct export_evenodd){.sites = 1, .origin = layout->origin & 1};
    /* The last dimension is the fastest. */
    for (unsigned i = a->lattice; i-- > 0;) {
        e->sites *= a->shape[i];
        if (block % 2)
            block *= a->shape[i];
        else
            e->extent[e->slower_dims++] = a->shape[i];
    }
    e->pairs = block / 2 + block % 2;
    e->even_sites = e->sites / 2 + (e->sites % 2 && e->origin == 0);
}

/* Returns the position in the record of the k-th site in even-odd order. *run: how many sites,
 * from the k-th on, have positions that are 2 apart; the end of a half does not limit it. */
static uint64_t evenodd_site(const struct export_evenodd *e, uint64_t k, uint64_t *run)
{
    unsigned parity = e->origin;
    if (k >= e->even_sites) {
        k -= e->even_sites;
        parity ^= 1;
    }
    uint64_t block = k / e->pairs;
    *run = e->pairs - k % e->pairs;
    for (unsigned i = 0; i < e->slower_dims; i++) {
        parity ^= block % e->extent[i] & 1;
        block /= e->extent[i];
    }
    return 2 * k + parity;
}

/* ---- ranges ---- */

static void copy_bytes(void *out, const void *in, size_t count)
{
    memcpy(out, in, count);
}

int compute_init(struct export_compute *c, const struct export_layout *layout,
                 const struct limefile_export_spec *spec)
{
    const struct limefile_array *a = &layout->array;
    uint64_t sites = 1;
    for (unsigned i = 0; i < a->lattice; i++)
        sites *= a->shape[i];
    *c = (struct export_compute){
        .from = a->precision ? a->precision / 8 : 1,
        .site_bytes = a->bytes / sites,
        .even_odd = spec->even_odd,
    };
    c->to = spec->precision && a->precision ? spec->precision / 8 : c->from;
    c->convert = a->precision
                     ? limefile_find_converter(8 * c->from, false, 8 * c->to, spec->little)
                     : copy_bytes;
    if (__builtin_mul_overflow(c->site_bytes / c->from, c->to, &c->out_bytes) ||
        __builtin_mul_overflow(c->out_bytes, sites, &c->bytes) ||
        c->bytes > LIMEFILE_BYTES_MAX / 2)
        return LIMEFILE_E_STATE;
    if (c->even_odd)
        evenodd_init(&c->order, layout);
    return 0;
}

static int fetch_bytes(struct computation *w, uint64_t n, uint64_t at)
{
    const void *data = w->buffer;
    ssize_t got = w->read_record(w->context, w->buffer, (size_t)n, at, &data);
    w->in = data;
    if (got < 0)
        return (int)got;
    return (uint64_t)got == n ? 0 : LIMEFILE_E_SHRUNK;
}

/* Converts the numbers at `in`, and writes the bytes [skip, skip + n) of the result. */
static void convert_range(const struct export_compute *c, const unsigned char *in,
                          uint64_t skip, unsigned char *out, size_t n)
{
    unsigned char one[8];
    in += skip / c->to * c->from;
    size_t before = (size_t)(skip % c->to);
    if (before) {
        size_t part = c->to - before < n ? c->to - before : n;
        c->convert(one, in, 1);
        memcpy(out, one + before, part);
        in += c->from;
        out += part;
        n -= part;
    }
    size_t whole = n / c->to;
    if (whole)
        c->convert(out, in, whole);
    if (n % c->to) {
        c->convert(one, in + whole * c->from, 1);
        memcpy(out + whole * c->to, one, n % c->to);
    }
}

/* Converts the record from byte `base` on. Writes bytes [offset, offset + n) of the result. */
static int read_consecutive(struct computation *w, uint64_t base, unsigned char *out, size_t n,
                            uint64_t offset)
{
    const struct export_compute *c = w->compute;
    const uint64_t most = BUFFER_BYTES / c->from;
    while (n) {
        uint64_t first = offset / c->to, skip = offset % c->to;
        uint64_t count = (skip + n) / c->to + ((skip + n) % c->to != 0);
        if (count > most)
            count = most;
        size_t part = count * c->to - skip < n ? (size_t)(count * c->to - skip) : n;
        int err = fetch_bytes(w, count * c->from, base + first * c->from);
        if (err)
            return err;
        convert_range(c, w->in, skip, out, part);
        out += part;
        offset += part;
        n -= part;
    }
    return 0;
}

/* Changes *k, a position in even-odd order, to the position in its half (the even or the odd
 * sites). Returns the number of sites from *k to the end of the half. */
static uint64_t enter_half(const struct export_evenodd *e, uint64_t *k)
{
    if (*k < e->even_sites)
        return e->even_sites - *k;
    uint64_t left = e->sites - *k;
    *k -= e->even_sites;
    return left;
}

/* Reads pairs of neighbouring sites as one range of the record, and converts one site of each
 * pair. *n: the requested bytes; becomes the bytes written. */
static int read_pairs(struct computation *w, unsigned char *out, size_t *n, uint64_t offset)
{
    const struct export_compute *c = w->compute;
    uint64_t k = offset / c->out_bytes, skip = offset % c->out_bytes, pair = k;
    uint64_t count = enter_half(&c->order, &pair), most = BUFFER_BYTES / (2 * c->site_bytes);
    uint64_t requested = (skip + *n) / c->out_bytes + ((skip + *n) % c->out_bytes != 0);
    count = count < requested ? count : requested;
    count = count < most ? count : most;
    uint64_t end = 2 * (pair + count) < c->order.sites ? 2 * (pair + count) : c->order.sites;
    int err = fetch_bytes(w, (end - 2 * pair) * c->site_bytes, 2 * pair * c->site_bytes);
    size_t done = 0;
    for (uint64_t i = 0, site = 0, run = 0; i < count && !err; i++, site += 2, run--) {
        if (run == 0)
            site = evenodd_site(&c->order, k + i, &run) - 2 * pair;
        uint64_t left = c->out_bytes - skip;
        size_t part = left < *n - done ? (size_t)left : *n - done;
        convert_range(c, w->in + site * c->site_bytes, skip, out + done, part);
        done += part;
        skip = 0;
    }
    *n = done;
    return err;
}

static int read_even_odd(struct computation *w, unsigned char *out, size_t n, uint64_t offset)
{
    const struct export_compute *c = w->compute;
    bool fits = c->site_bytes <= BUFFER_BYTES / 2;
    int err = 0;
    while (n && !err) {
        size_t part = n;
        if (fits) {
            err = read_pairs(w, out, &part, offset);
        } else {
            uint64_t run, skip = offset % c->out_bytes;
            uint64_t site = evenodd_site(&c->order, offset / c->out_bytes, &run);
            if (part > c->out_bytes - skip)
                part = (size_t)(c->out_bytes - skip);
            err = read_consecutive(w, site * c->site_bytes, out, part, skip);
        }
        out += part;
        offset += part;
        n -= part;
    }
    return err;
}

int compute_read(const struct export_compute *c, unsigned char *out, size_t n, uint64_t offset,
                 limefile_export_read_fn *read_record, void *context)
{
    struct computation w;
    w.compute = c;
    w.read_record = read_record;
    w.context = context;
    w.in = w.buffer;
    return c->even_odd ? read_even_odd(&w, out, n, offset)
                       : read_consecutive(&w, 0, out, n, offset);
}
