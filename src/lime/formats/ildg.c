/* ildg.c - configurations in LIME containers */
#include "gauge.h"

#include <errno.h>
#include <stdlib.h>

enum {
    INFO_MAX = 1 << 20, /* bytes of a text that a conversion keeps */
};

/* ---- one field ---- */

static bool is_gauge(const struct limefile_field *f)
{
    return limefile_field_configuration(f, NULL) == LIMEFILE_CONFIGURATION;
}

int gauge_field_open(struct limefile_gauge *g, const struct limefile_field *field)
{
    if (!is_gauge(field))
        return LIMEFILE_E_GAUGE_NONE;
    g->format = LIMEFILE_GAUGE_ILDG;
    g->rows = 3;
    g->ordinal = field->record.ordinal;
    g->data_offset = field->record.data_offset;
    g->data_bytes = field->record.bytes;
    g->has_checksum = field->has_checksum;
    g->sums.scidac = field->checksum;
    memcpy(g->sites.extent, field->lattice.extent, sizeof g->sites.extent);
    g->sites.precision = field->precision;
    g->sites.read = gauge_read_plain;
    g->sites.context = g;
    g->kept->form = links_ildg(g->sites.precision);
    return 0;
}

/* ---- which field ---- */

static int choose(const struct limefile_fields *fields, uint64_t ordinal,
                  struct limefile_field *out)
{
    struct limefile_field field;
    unsigned found = 0;
    if (ordinal)
        return limefile_fields_of(fields, ordinal, out) && is_gauge(out)
                   ? 0
                   : LIMEFILE_E_GAUGE_NONE;
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        if (!is_gauge(&field))
            continue;
        if (found++)
            return LIMEFILE_E_GAUGE_SEVERAL;
        *out = field;
    }
    return found ? 0 : LIMEFILE_E_GAUGE_NONE;
}

/* ---- what other records say ---- */

static int read_stated(struct limefile_gauge *g, const struct limefile_field *field)
{
    struct limefile_gauge_kept *kept = g->kept;
    int count = limefile_physics_stated_of(kept->source, kept->index, field, kept->stated);
    for (int i = 0; i < count; i++)
        if (kept->stated[i].quantity == LIMEFILE_PHYSICS_TRACE)
            g->has_trace = true;
        else
            g->has_plaquette = true;
    kept->stated_count = count < 0 ? 0 : count;
    return count < 0 ? count : 0;
}

static int read_lfn(struct limefile_gauge *g, uint64_t ordinal)
{
    struct limefile_record r;
    char text[LIMEFILE_LFN_MAX];
    if (!ordinal || limefile_index_get(g->kept->index, ordinal, &r) != 0 ||
        r.bytes > sizeof text)
        return 0;
    int err = gauge_read(g->kept->source, text, (size_t)r.bytes, r.data_offset);
    if (!err && limefile_lfn_parse(text, (size_t)r.bytes, g->lfn) != 0)
        g->lfn[0] = '\0';
    return err;
}

/* Keeps the text about the configuration that no other field of `g` has, so that a conversion
 * to ILDG does not lose it. */
static int read_info(struct limefile_gauge *g, const struct limefile_field *field)
{
    static const char *const types[] = {"xlf-info", "nersc-header", "milc-header",
                                        "openqcd-header"};
    const struct limefile_gauge_kept *kept = g->kept;
    struct limefile_record r;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && !g->text; i++) {
        if (!limefile_physics_find_text(kept->index, field, types[i], &r) || r.bytes > INFO_MAX)
            continue;
        char *text = calloc(1, (size_t)r.bytes + 1);
        if (!text)
            return -ENOMEM;
        int err = gauge_read(kept->source, text, (size_t)r.bytes, r.data_offset);
        if (err || strlen(text) + 1 < r.bytes) { /* more than a NUL at the end is not text */
            free(text);
            return err;
        }
        g->text = text;
        g->text_type = types[i];
    }
    return 0;
}

int gauge_ildg_open(struct limefile_gauge *g, uint64_t ordinal)
{
    struct limefile_gauge_kept *kept = g->kept;
    struct limefile_fields fields;
    struct limefile_field field;
    int err = limefile_index_build(kept->source, &kept->index);
    if (!err)
        err = limefile_fields_build(kept->source, kept->index, &fields);
    if (err)
        return err;
    err = choose(&fields, ordinal, &field);
    limefile_fields_release(&fields);
    if (!err)
        err = gauge_field_open(g, &field);
    else if (err != LIMEFILE_E_GAUGE_SEVERAL && limefile_index_fault(kept->index))
        err = limefile_index_fault(kept->index)->code;
    if (!err)
        err = read_lfn(g, field.by_lfn);
    if (!err)
        err = read_info(g, &field);
    return err ? err : read_stated(g, &field);
}
