/* gauge.c - open a gauge configuration, find its format, and compute its checksums */
#include "gauge.h"

#include <errno.h>
#include <stdlib.h>

static const struct gauge_format *const formats[] = {
    [LIMEFILE_GAUGE_ILDG] = &gauge_ildg,
    [LIMEFILE_GAUGE_NERSC] = &gauge_nersc,
    [LIMEFILE_GAUGE_MILC] = &gauge_milc,
    [LIMEFILE_GAUGE_OPENQCD] = &gauge_openqcd,
};

const struct gauge_format *gauge_find_format(enum limefile_gauge_format format)
{
    return formats[format];
}

const char *limefile_gauge_format_name(enum limefile_gauge_format format)
{
    return formats[format] ? formats[format]->name : "none";
}

enum limefile_gauge_format limefile_gauge_format_by_name(const char *word)
{
    for (int i = LIMEFILE_GAUGE_ILDG; i <= LIMEFILE_GAUGE_OPENQCD; i++)
        if (strcmp(formats[i]->name, word) == 0)
            return (enum limefile_gauge_format)i;
    return LIMEFILE_GAUGE_NONE;
}

bool limefile_gauge_error_is_damage(int err)
{
    return err == LIMEFILE_E_GAUGE_HEADER || err == LIMEFILE_E_GAUGE_VALUE ||
           err == LIMEFILE_E_GAUGE_LATTICE || err == LIMEFILE_E_GAUGE_LENGTH ||
           err == LIMEFILE_E_GAUGE_LIST || err == LIMEFILE_E_GAUGE_NAN;
}

/* ---- opening ---- */

enum limefile_gauge_format limefile_gauge_detect(const void *first, size_t n, uint64_t size)
{
    for (int i = LIMEFILE_GAUGE_NERSC; i <= LIMEFILE_GAUGE_OPENQCD; i++)
        if (formats[i]->matches(first, n, size))
            return (enum limefile_gauge_format)i;
    return LIMEFILE_GAUGE_NONE;
}

static int open_detected(struct limefile_gauge *g, uint64_t ordinal)
{
    unsigned char head[GAUGE_HEAD_BYTES] = {0};
    uint64_t size;
    int err = g->priv->source->ops->size(g->priv->source, &size);
    ssize_t n = err ? err : limefile_read_full(g->priv->source, head, sizeof head, 0);
    if (n < 0)
        return (int)n;
    struct limefile_finding fault; /* of a container in a mount that shows no record */
    if (n == 0 && g->priv->source->ops->fault &&
        g->priv->source->ops->fault(g->priv->source, 0, &fault))
        return fault.code;
    if (limefile_header_is_magic(head, (size_t)n) && n >= 4)
        return g->priv->depth == GAUGE_ALL ? gauge_ildg_open(g, ordinal)
                                           : LIMEFILE_E_GAUGE_UNKNOWN;
    if (ordinal)
        return LIMEFILE_E_NO_RECORD;
    enum limefile_gauge_format format = limefile_gauge_detect(head, (size_t)n, size);
    return format ? formats[format]->open(g, head, size) : LIMEFILE_E_GAUGE_UNKNOWN;
}

static struct limefile_gauge *new_gauge(struct limefile_source *source)
{
    struct limefile_gauge *g = calloc(1, sizeof *g);
    struct limefile_gauge_private *priv = calloc(1, sizeof *priv);
    if (!g || !priv) {
        free(g);
        free(priv);
        return NULL;
    }
    g->priv = priv;
    priv->source = source;
    return g;
}

int gauge_open_depth(struct limefile_source *source, uint64_t ordinal, enum gauge_depth depth,
                     struct limefile_gauge **out, char *why)
{
    struct limefile_gauge *g = new_gauge(source);
    if (!g)
        return -ENOMEM;
    g->priv->depth = depth;
    g->priv->why = why;
    int err = open_detected(g, ordinal);
    g->priv->why = NULL;
    if (err)
        limefile_gauge_close(g);
    else
        *out = g;
    return err;
}

int limefile_gauge_open(struct limefile_source *source, uint64_t ordinal,
                        struct limefile_gauge **out, char why[LIMEFILE_GAUGE_WHY_MAX])
{
    if (why)
        *why = '\0';
    return gauge_open_depth(source, ordinal, GAUGE_ALL, out, why);
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
    limefile_index_free(g->priv->index);
    free(g->priv->position);
    free(g->priv);
    free(g->text);
    free(g);
}

/* ---- sums ---- */

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

/* Adds stored sites of `site` bytes each to the format's checksum. */
static void sum_data(enum limefile_gauge_format format, const void *data, size_t site,
                     bool little, uint64_t first, uint64_t count,
                     struct limefile_gauge_sums *sums)
{
    if (format == LIMEFILE_GAUGE_ILDG)
        limefile_checksum_add(&sums->scidac, data, count, site, first);
    else if (format == LIMEFILE_GAUGE_NERSC)
        sums->nersc += links_sum(data, (size_t)count * site / 4, little);
    else if (format == LIMEFILE_GAUGE_MILC)
        links_xor(data, (size_t)count * site / 4, little, first * site / 4, &sums->sum29,
                  &sums->sum31);
}

/* Sums do not depend on the file's byte order, because words are added as numbers. MILC's sums
 * depend on each site's position in the file: priv->position if the file has a site list. */
void gauge_add_source(const struct limefile_gauge *g, const void *sites, uint64_t first,
                      uint64_t count, struct limefile_gauge_sums *sums)
{
    const unsigned char *at = sites;
    const uint32_t *position = g->priv ? g->priv->position : NULL;
    size_t site = limefile_sites_bytes(&g->sites);
    if (g->format == LIMEFILE_GAUGE_NERSC && g->rows == 2)
        sums->nersc += limefile_gauge_nersc_sum(at, count, g->sites.precision, g->rows);
    else if (!position)
        sum_data(g->format, at, site, false, first, count, sums);
    for (uint64_t i = 0; position && i < count; i++)
        sum_data(g->format, at + i * site, site, false, position[first + i], 1, sums);
}

void gauge_add_image(const struct limefile_gauge_image *image, const void *data, size_t n,
                     uint64_t offset, struct limefile_gauge_sums *sums)
{
    size_t site = 4 * links_bytes(&image->form);
    sum_data(image->format, data, site, image->form.little, offset / site, n / site, sums);
}

void gauge_merge_sums(struct limefile_gauge_sums *sums, const struct limefile_gauge_sums *other)
{
    sums->nersc += other->nersc;
    sums->sum29 ^= other->sum29;
    sums->sum31 ^= other->sum31;
    sums->scidac.suma ^= other->scidac.suma;
    sums->scidac.sumb ^= other->scidac.sumb;
}
