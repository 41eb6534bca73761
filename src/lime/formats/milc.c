/* milc.c - MILC version 5: a binary header in the writer's byte order, single precision */
#include "gauge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LIST_BLOCK = 16384, /* ranks (numbers of sites in the lattice) read at a time */
    TEXT_MAX = 512,
    MAGIC = 20103, /* 0x4e87 */
    AT_EXTENT = 4,
    AT_DATE = 20,
    DATE_BYTES = 64,
    AT_ORDER = AT_DATE + DATE_BYTES,
    HEADER_BYTES = 88, /* bytes before the list of sites or the sums */
};

static uint32_t get32(const unsigned char *at, bool little)
{
    return little ? get_le32(at) : get_be32(at);
}

/* ---- a list of sites ---- */

/* Sets position[rank] of n listed sites to their positions in the file; UINT32_MAX: not set. */
static int set_positions(struct limefile_gauge *g, const unsigned char *raw, uint64_t first,
                         uint64_t n, uint64_t sites)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t rank = get32(raw + 4 * i, g->little);
        if (rank >= sites || g->priv->position[rank] != UINT32_MAX)
            return LIMEFILE_E_GAUGE_LIST;
        g->priv->position[rank] = (uint32_t)(first + i);
    }
    return 0;
}

static int load_site_list(struct limefile_gauge *g, uint64_t sites)
{
    unsigned char *raw = malloc(LIST_BLOCK * 4);
    g->priv->position = malloc((size_t)sites * sizeof *g->priv->position);
    int err = raw && g->priv->position ? 0 : -ENOMEM;
    if (!err)
        memset(g->priv->position, 0xff, (size_t)sites * sizeof *g->priv->position);
    for (uint64_t at = 0, n; !err && at < sites; at += n) {
        n = sites - at < LIST_BLOCK ? sites - at : LIST_BLOCK;
        err = limefile_read_exact(g->priv->source, raw, (size_t)n * 4, HEADER_BYTES + at * 4);
        if (!err)
            err = set_positions(g, raw, at, n, sites);
    }
    free(raw);
    return err;
}

/* Reads sites that are consecutive in the file in one piece. */
static int read_listed_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct limefile_gauge *g = context;
    const uint32_t *position = g->priv->position;
    size_t site = limefile_sites_bytes(&g->sites);
    uint64_t n;
    int err = 0;
    for (uint64_t i = 0; !err && i < count; i += n) {
        for (n = 1; i + n < count && position[first + i + n] == position[first + i] + n;)
            n++;
        err = gauge_read_plain(context, position[first + i], n, (char *)out + i * site);
    }
    return err;
}

/* ---- the header ---- */

static int format_milc_text(struct limefile_gauge *g)
{
    g->text = malloc(TEXT_MAX);
    if (!g->text)
        return -ENOMEM;
    snprintf(g->text, TEXT_MAX,
             "magic_number = %d\nnx = %llu\nny = %llu\nnz = %llu\nnt = %llu\n"
             "time_stamp = %s\norder = %d\nsum29 = %x\nsum31 = %x\n",
             MAGIC, (unsigned long long)g->sites.extent[0],
             (unsigned long long)g->sites.extent[1], (unsigned long long)g->sites.extent[2],
             (unsigned long long)g->sites.extent[3], g->date, g->has_site_list, g->sums.sum29,
             g->sums.sum31);
    return 0;
}

/* Copies the characters before the first that is not printable ASCII, such as a NUL. */
static void parse_date(struct limefile_gauge *g, const unsigned char *raw)
{
    size_t n = 0;
    while (n < DATE_BYTES && raw[n] >= ' ' && raw[n] < 0x7f)
        n++;
    memcpy(g->date, raw, n);
}

static int parse_lattice(struct limefile_gauge *g, const unsigned char *head, uint64_t size)
{
    for (int i = 0; i < 4; i++) {
        uint32_t extent = get32(head + AT_EXTENT + 4 * i, g->little);
        if (extent == 0 || extent > INT32_MAX)
            return gauge_fail(g, LIMEFILE_E_GAUGE_LATTICE, "n%c = %d: not a number of sites",
                              "xyzt"[i], (int32_t)extent);
        g->sites.extent[i] = extent;
    }
    uint64_t sites = gauge_count_sites(g->sites.extent);
    g->data_bytes = gauge_data_bytes(g->sites.extent, &g->priv->form);
    const uint64_t *l = g->sites.extent;
    if (!sites || !g->data_bytes || (g->has_site_list && sites > INT32_MAX))
        return gauge_fail(g, LIMEFILE_E_GAUGE_LATTICE,
                          "nx ny nz nt = %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                          ": too many sites",
                          l[0], l[1], l[2], l[3]);
    if (g->has_site_list && g->priv->depth != GAUGE_ALL && sites > GAUGE_LIST_MAX)
        return LIMEFILE_E_GAUGE_LIST;
    g->data_offset = HEADER_BYTES + (g->has_site_list ? 4 * sites : 0) + 8;
    return gauge_check_size(g, size);
}

static int read_sums(struct limefile_gauge *g)
{
    unsigned char raw[8];
    int err =
        limefile_read_exact(g->priv->source, raw, sizeof raw, g->data_offset - sizeof raw);
    g->sums.sum29 = get32(raw, g->little);
    g->sums.sum31 = get32(raw + 4, g->little);
    /* A program that does not compute the sums writes zeros. */
    g->has_checksum = g->sums.sum29 || g->sums.sum31;
    return err;
}

static bool matches_milc(const unsigned char *head, size_t n, uint64_t size)
{
    (void)size;
    return n >= 4 && (get_be32(head) == MAGIC || get_le32(head) == MAGIC);
}

static int open_milc(struct limefile_gauge *g, const unsigned char *head, uint64_t size)
{
    if (size < HEADER_BYTES + 8)
        return LIMEFILE_E_GAUGE_HEADER;
    g->format = LIMEFILE_GAUGE_MILC;
    g->little = get_be32(head) != MAGIC;
    g->has_site_list = get32(head + AT_ORDER, g->little) != 0;
    g->rows = 3;
    g->priv->form = (struct links_form){.precision = 32, .rows = 3, .little = g->little};
    g->sites.precision = 32;
    g->sites.read = g->has_site_list ? read_listed_sites : gauge_read_plain;
    g->sites.context = g;
    parse_date(g, head + AT_DATE);
    int err = parse_lattice(g, head, size);
    if (!err)
        err = read_sums(g);
    uint64_t sites = err ? 0 : gauge_count_sites(g->sites.extent);
    if (!err && g->has_site_list && (g->priv->depth != GAUGE_HEADER || sites <= GAUGE_SCAN_MAX))
        err = load_site_list(g, sites);
    return err ? err : format_milc_text(g);
}

/* ---- writing, little-endian ---- */

static int make_milc_header(struct limefile_gauge_image *image,
                            const struct limefile_gauge_totals *totals)
{
    unsigned char *header = gauge_make_header(image, HEADER_BYTES + 8);
    const char *date = image->options.date;
    if (!header)
        return -ENOMEM;
    date = date && *date ? date : "unknown";
    put_le32(header, MAGIC);
    for (int i = 0; i < 4; i++)
        put_le32(header + 4 + 4 * i, image->sites.extent[i]);
    memcpy(header + AT_DATE, date, strnlen(date, DATE_BYTES - 1));
    if (totals) {
        put_le32(header + HEADER_BYTES, totals->image.sum29);
        put_le32(header + HEADER_BYTES + 4, totals->image.sum31);
    }
    return 0;
}

const struct gauge_format gauge_milc = {
    .name = "milc",
    .matches = matches_milc,
    .open = open_milc,
    .make_header = make_milc_header,
    .precision = 32,
    .rows_min = 3,
    .extent_max = INT32_MAX,
};
