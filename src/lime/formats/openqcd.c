/* openqcd.c - read and write files that openQCD exports
 *
 * openQCD numbers the directions t, x, y, z from 0 to 3, and calls a site a point. In a point's
 * number t is slowest and z fastest. The file has only the odd points (x+y+z+t is odd), in the
 * order of their numbers. Each has eight links: for each direction, the link of the point and
 * the link of the point's neighbour below. A column is the points with the same x, y and t.
 * Extents are even, so half of a column's points are odd; these are consecutive in the file. */
#include "gauge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LINK_BYTES = LIMEFILE_LINK_REALS * 8,
    HEADER_BYTES = 24,
    EXTENT_MAX = 65536,
    PREFETCH_POINTS = 3, /* number of points by which the prefetch is ahead */
    CACHE_LINE = 64,
    PLANES_MAX = 512,   /* z planes read at a time; limits the buffer for a column */
    POINTS_MAX = 16384, /* points encoded at a time */
    TEXT_MAX = 256,
};

static const struct links_form openqcd = {.precision = 64, .rows = 3, .little = true};
static const struct links_form ildg = {.precision = 64, .rows = 3}; /* ILDG's form */

/* ---- the header ---- */

static double get_le_double(const unsigned char *at)
{
    uint64_t bits = __builtin_bswap64(get_be64(at));
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool parse_extents(const unsigned char *head, uint64_t extent[4])
{
    for (int i = 0; i < 4; i++) {
        uint32_t n = get_le32(head + 4 * i);
        if (n == 0 || n > EXTENT_MAX || n % 2 != 0)
            return false;
        extent[(i + 3) % 4] = n; /* the file's order is t, x, y, z */
    }
    return true;
}

/* Returns true if extents, length and plaquette of the file are those of an openQCD file. */
static bool is_openqcd(const unsigned char *head, uint64_t size)
{
    uint64_t extent[4], bytes;
    double plaquette = get_le_double(head + 16);
    if (!parse_extents(head, extent))
        return false;
    bytes = gauge_data_bytes(extent, &openqcd);
    return bytes && size == HEADER_BYTES + bytes && fabs(plaquette) <= 3.1;
}

/* Returns true if the file has valid extents and an SU(3) link where an openQCD file has them.
 * Length and plaquette may be wrong: open_openqcd() then reports the damage. openQ*D's blocked
 * files and its dumps have no link at this offset. openQ*D's files with a U(1) field have a
 * link there; this function recognizes them by their length. */
static bool begins_with_link(const unsigned char *head, size_t n, uint64_t size)
{
    enum { U1_BYTES = 4 * 8, PLAQUETTE_BYTES = 8 };
    uint64_t extent[4], sites;
    double link[LIMEFILE_LINK_REALS], unitarity, determinant;
    if (n < HEADER_BYTES + LINK_BYTES || !parse_extents(head, extent) ||
        !gauge_data_bytes(extent, &openqcd))
        return false;
    sites = gauge_count_sites(extent);
    if (size == HEADER_BYTES + PLAQUETTE_BYTES + sites * (4 * LINK_BYTES + U1_BYTES))
        return false;
    for (unsigned i = 0; i < LIMEFILE_LINK_REALS; i++)
        link[i] = get_le_double(head + HEADER_BYTES + 8 * i);
    return limefile_physics_measure_link(link, &unitarity, &determinant) < 0 &&
           unitarity < 1e-6 && determinant < 1e-6;
}

/* ---- boxes of sites ---- */

/* Returns how far `at` is above the box's base in direction d, modulo the extent: less than the
 * box's width if `at` is in the box, not less otherwise. */
static uint64_t box_local(const struct openqcd_box *box, const uint64_t extent[4], int d,
                          uint64_t at)
{
    return at >= box->base[d] ? at - box->base[d] : at + extent[d] - box->base[d];
}

/* Adds a layer below the box in each direction in which the box does not span the lattice. */
static void box_grow(struct openqcd_box *box, const uint64_t extent[4])
{
    for (int d = 0; d < 3; d++)
        if (box->width[d] < extent[d]) {
            box->base[d] = box->base[d] ? box->base[d] - 1 : extent[d] - 1;
            box->width[d]++;
        }
}

static uint64_t box_sites(const struct openqcd_box *box)
{
    return box->width[0] * box->width[1] * box->width[2];
}

/* Reads the box at time t, x fastest. Rows that are consecutive in the lattice and in the box
 * are read together. */
static int box_read(const struct limefile_sites *sites, const struct openqcd_box *box,
                    uint64_t t, unsigned char *out)
{
    const uint64_t *l = sites->extent, *width = box->width;
    size_t site = limefile_sites_bytes(sites);
    uint64_t rows, n;
    int err = 0;
    for (uint64_t k = 0; k < width[2]; k++)
        for (uint64_t j = 0; j < width[1]; j += rows) {
            uint64_t z = (box->base[2] + k) % l[2], y = (box->base[1] + j) % l[1];
            bool whole = width[0] == l[0] && box->base[0] == 0;
            rows = !whole ? 1 : width[1] - j < l[1] - y ? width[1] - j : l[1] - y;
            for (uint64_t i = 0; !err && i < width[0]; i += n, out += n * rows * site) {
                uint64_t x = (box->base[0] + i) % l[0];
                n = width[0] - i < l[0] - x ? width[0] - i : l[0] - x;
                err = sites->read(sites->context, x + l[0] * (y + l[1] * (z + l[2] * t)),
                                  n * rows, out);
            }
        }
    return err;
}

/* Finds the largest box, with at most `planes` in z and at one time *t, whose sites are the
 * lattice's sites [first, first + n) with n <= count. Returns n. */
static uint64_t find_run_box(const uint64_t l[4], uint64_t first, uint64_t count,
                             uint64_t planes, struct openqcd_box *box, uint64_t *t)
{
    uint64_t at[3], plane = l[0] * l[1];
    at[0] = first % l[0];
    at[1] = first / l[0] % l[1];
    at[2] = first / plane % l[2];
    *t = first / plane / l[2];
    *box = (struct openqcd_box){.base = {at[0], at[1], at[2]}, .width = {1, 1, 1}};
    uint64_t unit[] = {1, l[0], plane};
    int d = at[0] == 0 && count >= l[0] ? 1 : 0;
    d = d && at[1] == 0 && count >= plane ? 2 : d;
    for (int i = 0; i < d; i++)
        box->width[i] = l[i];
    uint64_t most = l[d] - at[d], n = count / unit[d];
    n = n < most ? n : most;
    box->width[d] = d == 2 && n > planes ? planes : n;
    return box_sites(box);
}

/* ---- reading ---- */

struct reader {
    const struct limefile_gauge *g;
    struct openqcd_box box; /* the sites to read */
    uint64_t t;
    unsigned char *out;
    unsigned char *column; /* buffer for the points of a column */
};

/* Stores the link of site `at`; `direction` is numbered as in ILDG. Ignores sites outside of
 * the box, or of another time than r->t. */
static void store_link(const struct reader *r, const uint64_t at[4], unsigned direction,
                       const unsigned char *link)
{
    const uint64_t *extent = r->g->sites.extent;
    uint64_t local[3];
    if (at[3] != r->t)
        return;
    for (int d = 0; d < 3; d++) {
        local[d] = box_local(&r->box, extent, d, at[d]);
        if (local[d] >= r->box.width[d])
            return;
    }
    uint64_t site = local[0] + r->box.width[0] * (local[1] + r->box.width[1] * local[2]);
    links_convert(&openqcd, link, &ildg, r->out + (4 * site + direction) * LINK_BYTES, 1);
}

/* Stores those of the point's eight links whose sites are in the box at r->t. */
static void store_point(const struct reader *r, const uint64_t at[4], const unsigned char *raw)
{
    const uint64_t *l = r->g->sites.extent;
    for (unsigned slot = 0; slot < 4; slot++, raw += 2 * LINK_BYTES) {
        unsigned d = (slot + 3) % 4;
        uint64_t below[4] = {at[0], at[1], at[2], at[3]};
        below[d] = below[d] ? below[d] - 1 : l[d] - 1;
        store_link(r, at, d, raw);
        store_link(r, below, d, raw + LINK_BYTES);
    }
}

/* Reads the odd points of a column with z in [from, from + n), which must not wrap around. */
static int read_column(const struct reader *r, uint64_t x, uint64_t y, uint64_t t,
                       uint64_t from, uint64_t n)
{
    const uint64_t *l = r->g->sites.extent;
    uint64_t first = from + ((x + y + t + from) % 2 == 0), at[4] = {x, y, first, t};
    uint64_t points = first < from + n ? (from + n - first + 1) / 2 : 0;
    uint64_t number = (first + l[2] * (y + l[1] * (x + l[0] * t))) / 2;
    if (!points)
        return 0;
    int err = limefile_read_exact(r->g->priv->source, r->column, points * OPENQCD_POINT_BYTES,
                                  r->g->data_offset + number * OPENQCD_POINT_BYTES);
    for (uint64_t i = 0; !err && i < points; i++, at[2] += 2)
        store_point(r, at, r->column + i * OPENQCD_POINT_BYTES);
    return err;
}

/* Reads the odd points of a column at the box's z. If the column is inside the box in x and y,
 * also reads the point above the box and the points at t + 1, which have links of the box. */
static int read_columns(const struct reader *r, uint64_t x, uint64_t y, bool inside)
{
    const uint64_t *l = r->g->sites.extent;
    uint64_t z = r->box.base[2], n = r->box.width[2], above = (z + n) % l[2];
    int err = read_column(r, x, y, r->t, z, n);
    if (!err && inside && n < l[2])
        err = read_column(r, x, y, r->t, above, 1);
    if (!err && inside)
        err = read_column(r, x, y, (r->t + 1) % l[3], z, n);
    return err;
}

/* Reads the columns of the box, and the columns just above the box in x or in y. */
static int read_box(const struct reader *r)
{
    const uint64_t *l = r->g->sites.extent;
    const struct openqcd_box *b = &r->box;
    uint64_t xs = b->width[0] + (b->width[0] < l[0]), ys = b->width[1] + (b->width[1] < l[1]);
    int err = 0;
    for (uint64_t i = 0; !err && i < xs; i++)
        for (uint64_t j = 0; !err && j < ys; j++) {
            bool is_outside_x = i == b->width[0], is_outside_y = j == b->width[1];
            if (!is_outside_x || !is_outside_y)
                err = read_columns(r, (b->base[0] + i) % l[0], (b->base[1] + j) % l[1],
                                   !is_outside_x && !is_outside_y);
        }
    return err;
}

static int read_openqcd_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct limefile_gauge *g = context;
    const uint64_t *l = g->sites.extent;
    uint64_t planes = l[2] < PLANES_MAX ? l[2] : PLANES_MAX, n;
    struct reader r = {.g = g, .out = out};
    r.column = malloc((planes / 2 + 1) * OPENQCD_POINT_BYTES);
    int err = r.column ? 0 : -ENOMEM;
    for (; !err && count; count -= n, first += n) {
        n = find_run_box(l, first, count, planes, &r.box, &r.t);
        err = read_box(&r);
        r.out += n * limefile_sites_bytes(&g->sites);
    }
    free(r.column);
    return err;
}

static int format_openqcd_text(struct limefile_gauge *g, double plaquette)
{
    const uint64_t *l = g->sites.extent;
    g->text = malloc(TEXT_MAX);
    if (!g->text)
        return -ENOMEM;
    snprintf(g->text, TEXT_MAX, "N0 = %llu\nN1 = %llu\nN2 = %llu\nN3 = %llu\nplaq = %.17g\n",
             (unsigned long long)l[3], (unsigned long long)l[0], (unsigned long long)l[1],
             (unsigned long long)l[2], plaquette);
    return 0;
}

static bool matches_openqcd(const unsigned char *head, size_t n, uint64_t size)
{
    return (n >= HEADER_BYTES && is_openqcd(head, size)) || begins_with_link(head, n, size);
}

static int open_openqcd(struct limefile_gauge *g, const unsigned char *head, uint64_t size)
{
    double plaquette = get_le_double(head + 16);
    if (!parse_extents(head, g->sites.extent))
        return LIMEFILE_E_GAUGE_UNKNOWN;
    g->format = LIMEFILE_GAUGE_OPENQCD;
    g->rows = 3;
    g->little = true;
    g->data_offset = HEADER_BYTES;
    g->data_bytes = gauge_data_bytes(g->sites.extent, &openqcd);
    g->has_plaquette = true;
    g->plaquette = plaquette / 3;
    g->priv->form = openqcd;
    int err = gauge_check_size(g, size);
    if (err)
        return err;
    if (!is_openqcd(head, size))
        return gauge_fail(g, LIMEFILE_E_GAUGE_VALUE, "plaq = %g: not a plaquette", plaquette);
    g->sites.precision = 64;
    g->sites.read = read_openqcd_sites;
    g->sites.context = g;
    return format_openqcd_text(g, plaquette);
}

/* ---- writing ---- */

static void prefetch_link(const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += CACHE_LINE)
        __builtin_prefetch(at + i);
}

/* A column of a box. base: the column's first site in memory; step: bytes to the next site. */
struct column {
    const struct openqcd_box *box;
    const unsigned char *base;
    size_t step;
};

static struct column column_at(const struct openqcd_sites *s, const uint64_t l[4], uint64_t x,
                               uint64_t y, size_t site)
{
    const struct openqcd_box *box = &s->box;
    uint64_t row = box_local(box, l, 1, y) * box->width[0] + box_local(box, l, 0, x);
    return (struct column){box, s->at + (size_t)row * site,
                           (size_t)(box->width[0] * box->width[1]) * site};
}

static const unsigned char *find_site(const struct column *c, const uint64_t l[4], uint64_t z)
{
    return c->base + (size_t)box_local(c->box, l, 2, z) * c->step;
}

/* The points of a column are consecutive in the file. Each has links of five sites: of the site
 * at the point, and of the sites below that site in t, x, y and z. */
void openqcd_encode(const uint64_t l[4], unsigned precision, const struct openqcd_sites *now,
                    const struct openqcd_sites *before, uint64_t first, uint64_t count,
                    unsigned char *out)
{
    size_t site = LIMEFILE_SITE_REALS * (size_t)(precision / 8), link = site / 4;
    limefile_convert_fn *convert = limefile_find_converter(precision, false, 64, true);
    uint64_t height = l[2] / 2, points;
    for (; count; count -= points, first += points) {
        uint64_t number = first / height, k = first % height, t = number / l[1] / l[0];
        uint64_t x = number / l[1] % l[0], y = number % l[1];
        uint64_t z = 2 * k + ((x + y + t) % 2 == 0);
        const struct column here = column_at(now, l, x, y, site);
        const struct column below[4] = {column_at(before, l, x, y, site),
                                        column_at(now, l, x ? x - 1 : l[0] - 1, y, site),
                                        column_at(now, l, x, y ? y - 1 : l[1] - 1, site), here};
        points = count < height - k ? count : height - k;
        for (uint64_t i = 0; i < points; i++, z += 2)
            for (unsigned slot = 0; slot < 4; slot++, out += (size_t)2 * LINK_BYTES) {
                unsigned d = (slot + 3) % 4; /* the file's order is t, x, y, z */
                uint64_t under = slot < 3 ? z : z ? z - 1 : l[2] - 1;
                const unsigned char *at = find_site(&below[slot], l, under) + d * link;
                convert(out, find_site(&here, l, z) + d * link, LIMEFILE_LINK_REALS);
                convert(out + LINK_BYTES, at, LIMEFILE_LINK_REALS);
                if (i + PREFETCH_POINTS < points)
                    prefetch_link(at + 2 * PREFETCH_POINTS * below[slot].step, link);
            }
    }
}

/* The sites that encode_box() reads: the box `now` at time t, and `before` at t - 1. */
struct box_encoder {
    const struct limefile_sites *sites;
    struct openqcd_box now, before;
    uint64_t t;
    unsigned char *now_sites, *before_sites;
};

/* Finds the largest box, at one time *t, whose points are the file's points [first, first + n)
 * with n <= count. Returns n. */
static uint64_t find_point_box(const uint64_t l[4], uint64_t first, uint64_t count,
                               struct openqcd_box *box, uint64_t *t)
{
    uint64_t column = l[2] / 2, x = first / column / l[1] % l[0], y = first / column % l[1];
    uint64_t above = first % column, n;
    *t = first / column / l[1] / l[0];
    *box = (struct openqcd_box){.base = {x, y, 0}, .width = {1, 1, l[2]}};
    if (above || count < column) {
        n = count < column - above ? count : column - above;
        box->base[2] = 2 * above;
        box->width[2] = 2 * n;
        return n;
    }
    n = count / column;
    if (y || n < l[1]) {
        box->width[1] = n < l[1] - y ? n : l[1] - y;
        return box->width[1] * column;
    }
    n /= l[1];
    box->base[1] = 0;
    box->width[1] = l[1];
    box->width[0] = n < l[0] - x ? n : l[0] - x;
    return box->width[0] * l[1] * column;
}

/* Widens the box to whole rows if it has much of each, so that one read gets several rows. */
static void widen_rows(struct openqcd_box *box, const uint64_t l[4])
{
    if (4 * box->width[0] >= l[0] && box->width[1] * box->width[2] >= l[2]) {
        box->base[0] = 0;
        box->width[0] = l[0];
    }
}

static int encode_box(struct box_encoder *m, uint64_t first, uint64_t count, unsigned char *out)
{
    const uint64_t *l = m->sites->extent;
    size_t site = limefile_sites_bytes(m->sites);
    m->before = m->now;
    box_grow(&m->now, l);
    widen_rows(&m->now, l);
    widen_rows(&m->before, l);
    m->now_sites = malloc(box_sites(&m->now) * site);
    m->before_sites = malloc(box_sites(&m->before) * site);
    int err = m->now_sites && m->before_sites ? 0 : -ENOMEM;
    if (!err)
        err = box_read(m->sites, &m->now, m->t, m->now_sites);
    if (!err)
        err = box_read(m->sites, &m->before, m->t ? m->t - 1 : l[3] - 1, m->before_sites);
    struct openqcd_sites now = {m->now_sites, m->now}, before = {m->before_sites, m->before};
    if (!err)
        openqcd_encode(l, m->sites->precision, &now, &before, first, count, out);
    free(m->now_sites);
    free(m->before_sites);
    return err;
}

int openqcd_encode_from(const struct limefile_sites *sites, uint64_t first, uint64_t count,
                        unsigned char *out)
{
    struct box_encoder m = {.sites = sites};
    int err = 0;
    for (uint64_t n; !err && count; count -= n, first += n, out += n * OPENQCD_POINT_BYTES) {
        uint64_t most = count < POINTS_MAX ? count : POINTS_MAX;
        n = find_point_box(sites->extent, first, most, &m.now, &m.t);
        err = encode_box(&m, first, n, out);
    }
    return err;
}

static int make_openqcd_header(struct limefile_gauge_image *image,
                               const struct limefile_gauge_totals *totals)
{
    unsigned char *header = gauge_make_header(image, HEADER_BYTES);
    double plaquette = totals ? 3 * totals->physics.plaquette : 0;
    uint64_t bits;
    if (!header)
        return -ENOMEM;
    for (int i = 0; i < 4; i++)
        put_le32(header + 4 * i, image->sites.extent[(i + 3) % 4]);
    memcpy(&bits, &plaquette, sizeof bits);
    put_be64(header + 16, __builtin_bswap64(bits));
    return 0;
}

const struct gauge_format gauge_openqcd = {
    .name = "openqcd",
    .matches = matches_openqcd,
    .open = open_openqcd,
    .make_header = make_openqcd_header,
    .precision = 64,
    .rows_min = 3,
    .extent_max = EXTENT_MAX,
    .requires_even = true,
};
