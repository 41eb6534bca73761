/* ildg.c - configurations in LIME containers */
#include "gauge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    INFO_MAX = 4096, /* of an xlf-info */
};

/* ---- one field ---- */

/* ILDG's, or four colour matrices a site as QIO's users write them. */
static bool is_gauge(const struct limefile_field *f)
{
    static const char *const names[] = {"QDP_F3_ColorMatrix", "QDP_D3_ColorMatrix",
                                        "QUDA_FNc3_GaugeField", "QUDA_DNc3_GaugeField"};
    bool named = f->kind == LIMEFILE_KIND_GAUGE && strcmp(f->name, "su3gauge") == 0;
    for (size_t i = 0; f->kind == LIMEFILE_KIND_SCIDAC && i < 4; i++)
        named = named || strcmp(f->name, names[i]) == 0;
    return named && f->lattice.dims == 4 && !f->boxed && !f->halved && !f->disputed &&
           (f->site_bytes == 288 || f->site_bytes == 576) &&
           (f->precision == 0 || f->site_bytes == 9 * f->precision) &&
           gauge_count_sites(f->lattice.extent) && limefile_field_is_summable(f);
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
    g->sites.precision = field->site_bytes == 576 ? 64 : 32;
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

/* The value in "plaquette = 0.59..." at the start of a line, as tmLQCD writes it. */
static void take_info(struct limefile_gauge *g, const char *text)
{
    static const char name[] = "plaquette";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, name, sizeof name - 1) != 0)
            continue;
        at += sizeof name - 1;
        at += strspn(at, " \t");
        char *end;
        double value = *at == '=' ? strtod(at + 1, &end) : NAN;
        if (isfinite(value) && end != at + 1) {
            g->has_plaquette = true;
            g->plaquette = value;
        }
        return;
    }
}

/* The last xlf-info before the data. */
static int read_info(struct limefile_gauge *g)
{
    struct limefile_record r;
    char text[INFO_MAX];
    for (uint64_t i = g->ordinal; i-- > 1;) {
        if (limefile_index_get(g->kept->index, i, &r) != 0 || strcmp(r.type, "xlf-info") != 0)
            continue;
        size_t n = r.bytes < sizeof text ? (size_t)r.bytes : sizeof text - 1;
        int err = gauge_read(g->kept->source, text, n, r.data_offset);
        text[n] = '\0';
        if (!err)
            take_info(g, text);
        return err;
    }
    return 0;
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
    return err ? err : read_info(g);
}
