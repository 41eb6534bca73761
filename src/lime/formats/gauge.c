/* gauge.c - a configuration's file: which format it is, and what is common to all */
#include "gauge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {
    [LIMEFILE_GAUGE_NONE] = "none",       [LIMEFILE_GAUGE_ILDG] = "ildg",
    [LIMEFILE_GAUGE_NERSC] = "nersc",     [LIMEFILE_GAUGE_MILC] = "milc",
    [LIMEFILE_GAUGE_OPENQCD] = "openqcd",
};

static const char begin[] = "BEGIN_HEADER";

const char *limefile_gauge_format_name(enum limefile_gauge_format format)
{
    return names[format];
}

enum limefile_gauge_format limefile_gauge_format_named(const char *word)
{
    for (int i = LIMEFILE_GAUGE_ILDG; i <= LIMEFILE_GAUGE_OPENQCD; i++)
        if (strcmp(names[i], word) == 0)
            return (enum limefile_gauge_format)i;
    return LIMEFILE_GAUGE_NONE;
}

/* ---- sizes ---- */

uint64_t gauge_count_sites(const uint64_t extent[4])
{
    uint64_t sites = 1;
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(sites, extent[i], &sites))
            return 0;
    return sites >> GAUGE_SITE_BITS ? 0 : sites;
}

uint64_t gauge_data_bytes(const uint64_t extent[4], const struct links_form *form)
{
    uint64_t sites = gauge_count_sites(extent), bytes;
    if (__builtin_mul_overflow(sites, 4 * links_bytes(form), &bytes) || bytes > INT64_MAX / 2)
        return 0;
    return bytes;
}

/* ---- reading ---- */

int gauge_read(struct limefile_source *source, void *buf, size_t n, uint64_t offset)
{
    ssize_t came = limefile_read_full(source, buf, n, offset);
    return came < 0 ? (int)came : (size_t)came < n ? LIMEFILE_E_SHRUNK : 0;
}

/* Two rows are read to where the last of their sites will be, and spread from there. */
int gauge_read_plain(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct limefile_gauge *g = context;
    const struct links_form *form = &g->kept->form;
    struct links_form ildg = links_ildg(form->precision);
    size_t stored = (size_t)count * 4 * links_bytes(form);
    size_t whole = (size_t)count * 4 * links_bytes(&ildg);
    unsigned char *at = (unsigned char *)out + (whole - stored);
    int err =
        gauge_read(g->kept->source, at, stored, g->data_offset + first * 4 * links_bytes(form));
    if (!err && (form->rows != 3 || form->little))
        links_convert(form, at, &ildg, out, (size_t)count * 4);
    return err;
}

/* ---- what is wrong ---- */

int gauge_refuse(const struct limefile_gauge *g, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (g->kept->why)
        vsnprintf(g->kept->why, LIMEFILE_GAUGE_WHY_MAX, format, args);
    va_end(args);
    return code;
}

int gauge_check_size(const struct limefile_gauge *g, uint64_t size)
{
    const uint64_t *l = g->sites.extent, stated = g->data_offset + g->data_bytes;
    if (size == stated)
        return 0;
    return gauge_refuse(g, LIMEFILE_E_GAUGE_LENGTH,
                        "the file has %" PRIu64 " bytes, not the %" PRIu64
                        " that its header describes (%" PRIu64 " x %" PRIu64 " x %" PRIu64
                        " x %" PRIu64 " sites, %u rows of a link, %u bits)",
                        size, stated, l[0], l[1], l[2], l[3], g->kept->form.rows,
                        g->kept->form.precision);
}

bool limefile_gauge_is_damage(int err)
{
    return err == LIMEFILE_E_GAUGE_HEADER || err == LIMEFILE_E_GAUGE_VALUE ||
           err == LIMEFILE_E_GAUGE_LATTICE || err == LIMEFILE_E_GAUGE_LENGTH ||
           err == LIMEFILE_E_GAUGE_LIST || err == LIMEFILE_E_GAUGE_NAN;
}

/* ---- which format ---- */

static bool is_milc(const unsigned char *head)
{
    uint32_t magic = get_be32(head);
    return magic == GAUGE_MILC_MAGIC || magic == __builtin_bswap32(GAUGE_MILC_MAGIC);
}

enum limefile_gauge_format limefile_gauge_guess(const void *first, size_t n, uint64_t size)
{
    const unsigned char *head = first;
    if (n >= sizeof begin - 1 && memcmp(head, begin, sizeof begin - 1) == 0)
        return LIMEFILE_GAUGE_NERSC;
    if (n >= 4 && is_milc(head))
        return LIMEFILE_GAUGE_MILC;
    if ((n >= GAUGE_OPENQCD_HEADER && gauge_is_openqcd(head, size)) ||
        gauge_is_damaged_openqcd(head, n, size))
        return LIMEFILE_GAUGE_OPENQCD;
    return LIMEFILE_GAUGE_NONE;
}

static int open_as(struct limefile_gauge *g, uint64_t ordinal)
{
    unsigned char head[GAUGE_HEAD_BYTES] = {0};
    uint64_t size;
    int err = g->kept->source->ops->size(g->kept->source, &size);
    ssize_t n = err ? err : limefile_read_full(g->kept->source, head, sizeof head, 0);
    if (n < 0)
        return (int)n;
    if (limefile_header_is_magic(head, (size_t)n) && n >= 4)
        return g->kept->depth == GAUGE_ALL ? gauge_ildg_open(g, ordinal)
                                           : LIMEFILE_E_GAUGE_UNKNOWN;
    if (ordinal)
        return LIMEFILE_E_NO_RECORD;
    switch (limefile_gauge_guess(head, (size_t)n, size)) {
    case LIMEFILE_GAUGE_NERSC:
        return gauge_nersc_open(g, size);
    case LIMEFILE_GAUGE_MILC:
        return gauge_milc_open(g, head, size);
    case LIMEFILE_GAUGE_OPENQCD:
        return gauge_openqcd_open(g, head, size);
    default:
        return LIMEFILE_E_GAUGE_UNKNOWN;
    }
}

static struct limefile_gauge *new_gauge(struct limefile_source *source)
{
    struct limefile_gauge *g = calloc(1, sizeof *g);
    struct limefile_gauge_kept *kept = calloc(1, sizeof *kept);
    if (!g || !kept) {
        free(g);
        free(kept);
        return NULL;
    }
    g->kept = kept;
    kept->source = source;
    return g;
}

static int open_to(struct limefile_source *source, uint64_t ordinal, enum gauge_depth depth,
                   struct limefile_gauge **out, char *why)
{
    struct limefile_gauge *g = new_gauge(source);
    if (!g)
        return -ENOMEM;
    g->kept->depth = depth;
    g->kept->why = why;
    int err = open_as(g, ordinal);
    g->kept->why = NULL;
    if (err)
        limefile_gauge_close(g);
    else
        *out = g;
    return err;
}

int limefile_gauge_open(struct limefile_source *source, uint64_t ordinal,
                        struct limefile_gauge **out)
{
    return open_to(source, ordinal, GAUGE_ALL, out, NULL);
}

int limefile_gauge_open_explained(struct limefile_source *source, uint64_t ordinal,
                                  struct limefile_gauge **out, char why[LIMEFILE_GAUGE_WHY_MAX])
{
    *why = '\0';
    return open_to(source, ordinal, GAUGE_ALL, out, why);
}

int gauge_open_guise(struct limefile_source *source, enum gauge_depth depth,
                     struct limefile_gauge **out)
{
    return open_to(source, 0, depth, out, NULL);
}

int limefile_gauge_open_field(struct limefile_source *source,
                              const struct limefile_field *field, struct limefile_gauge **out)
{
    struct limefile_gauge *g = new_gauge(source);
    int err = g ? gauge_field_open(g, field) : -ENOMEM;
    if (err)
        limefile_gauge_close(g);
    else
        *out = g;
    return err;
}

void limefile_gauge_close(struct limefile_gauge *g)
{
    if (!g)
        return;
    limefile_index_free(g->kept->index);
    free(g->kept->place);
    free(g->kept);
    free(g->text);
    free(g);
}

/* ---- what is stored ---- */

/* A list of sites tells each one's place. */
static void sum_milc(const struct limefile_gauge *g, const unsigned char *at, uint64_t first,
                     uint64_t count, struct limefile_gauge_sums *sums)
{
    const uint32_t *place = g->kept->place;
    size_t words = LIMEFILE_SITE_REALS;
    if (!place) {
        links_xor(at, (size_t)count * words, false, first * words, &sums->sum29, &sums->sum31);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        links_xor(at + i * words * 4, words, false, (uint64_t)place[first + i] * words,
                  &sums->sum29, &sums->sum31);
}

uint32_t limefile_gauge_nersc_sum(const void *sites, uint64_t count, unsigned precision,
                                  unsigned rows)
{
    const unsigned char *at = sites;
    size_t link = LIMEFILE_LINK_REALS * (size_t)(precision / 8), words = link / 4;
    uint32_t sum = 0;
    if (rows == 3)
        return links_sum(at, (size_t)count * 4 * words, false);
    for (uint64_t i = 0; i < 4 * count; i++)
        sum += links_sum(at + i * link, words / 3 * 2, false);
    return sum;
}

/* All are sums of numbers, whatever order their bytes have in the file. */
void gauge_sum(const struct limefile_gauge *g, const void *sites, uint64_t first,
               uint64_t count, struct limefile_gauge_sums *sums)
{
    const unsigned char *at = sites;
    size_t site = limefile_sites_bytes(&g->sites);
    if (g->format == LIMEFILE_GAUGE_ILDG)
        limefile_checksum_add(&sums->scidac, sites, count, site, first);
    else if (g->format == LIMEFILE_GAUGE_MILC)
        sum_milc(g, at, first, count, sums);
    else if (g->format == LIMEFILE_GAUGE_NERSC)
        sums->nersc += limefile_gauge_nersc_sum(at, count, g->sites.precision, g->rows);
}

void gauge_merge_sums(struct limefile_gauge_sums *sums, const struct limefile_gauge_sums *other)
{
    sums->nersc += other->nersc;
    sums->sum29 ^= other->sum29;
    sums->sum31 ^= other->sum31;
    sums->scidac.suma ^= other->scidac.suma;
    sums->scidac.sumb ^= other->scidac.sumb;
}
