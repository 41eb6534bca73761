/* ildg.c - read a configuration in a LIME container, and write the records around its data */
#include "gauge.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    INFO_MAX = 1 << 20, /* bytes; read_info() ignores longer texts */
    FORMAT_TEXT_MAX = 1024,
};

static bool is_configuration(const struct limefile_field *f)
{
    return limefile_field_configuration(f, NULL) == LIMEFILE_CONFIGURATION;
}

int gauge_field_open(struct limefile_gauge *g, const struct limefile_field *field)
{
    if (!is_configuration(field))
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
    g->priv->form = links_ildg(g->sites.precision);
    return 0;
}

static int choose_field(const struct limefile_fields *fields, uint64_t ordinal,
                        struct limefile_field *out)
{
    struct limefile_field field;
    unsigned found = 0;
    if (ordinal)
        return limefile_fields_find(fields, ordinal, out) && is_configuration(out)
                   ? 0
                   : LIMEFILE_E_GAUGE_NONE;
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        if (!is_configuration(&field))
            continue;
        if (found++)
            return LIMEFILE_E_GAUGE_SEVERAL;
        *out = field;
    }
    return found ? 0 : LIMEFILE_E_GAUGE_NONE;
}

static int read_stated(struct limefile_gauge *g, const struct limefile_field *field)
{
    struct limefile_gauge_private *priv = g->priv;
    int count = limefile_physics_stated_read(priv->source, priv->index, field, priv->stated);
    for (int i = 0; i < count; i++)
        if (priv->stated[i].quantity == LIMEFILE_PHYSICS_TRACE)
            g->has_trace = true;
        else
            g->has_plaquette = true;
    priv->stated_count = count < 0 ? 0 : count;
    return count < 0 ? count : 0;
}

static int read_lfn(struct limefile_gauge *g, uint64_t ordinal)
{
    struct limefile_record r;
    if (!ordinal || limefile_index_get(g->priv->index, ordinal, &r) != 0)
        return 0;
    int found = limefile_record_lfn(g->priv->source, &r, g->lfn);
    return found < 0 ? found : 0;
}

/* Reads the configuration's text record into g->text, so that conversions to ILDG keep it. */
static int read_info(struct limefile_gauge *g, const struct limefile_field *field)
{
    static const char *const types[] = {"xlf-info", "nersc-header", "milc-header",
                                        "openqcd-header"};
    const struct limefile_gauge_private *priv = g->priv;
    struct limefile_record r;
    for (size_t i = 0; i < sizeof types / sizeof types[0] && !g->text; i++) {
        if (!limefile_physics_find_text(priv->index, field, types[i], &r) || r.bytes > INFO_MAX)
            continue;
        char *text;
        int err = limefile_record_read_text(priv->source, &r, (size_t)r.bytes, &text);
        /* A NUL before the end means that the record is not text. */
        if (err || strlen(text) + 1 < r.bytes) {
            free(text);
            return err;
        }
        g->text = text;
        g->text_type = types[i];
    }
    return 0;
}

/* Reads the configuration number from g->text: from a line or, in one line, after a comma. */
static void read_sequence(struct limefile_gauge *g)
{
    static const char *const names[] = {"trajectory nr", "SEQUENCE_NUMBER"};
    for (size_t i = 0; g->text && i < sizeof names / sizeof names[0]; i++) {
        const char *at = strstr(g->text, names[i]);
        if (!at || g->has_sequence)
            continue;
        at += strlen(names[i]);
        at += strspn(at, " =");
        g->has_sequence = limefile_parse_number(at, strspn(at, "0123456789"), &g->sequence) &&
                          g->sequence <= INT64_MAX;
        g->sequence = g->has_sequence ? g->sequence : 0;
    }
}

int gauge_ildg_open(struct limefile_gauge *g, uint64_t ordinal)
{
    struct limefile_gauge_private *priv = g->priv;
    struct limefile_fields fields;
    struct limefile_field field;
    int err = limefile_index_build(priv->source, &priv->index);
    if (!err)
        err = limefile_fields_build(priv->source, priv->index, &fields);
    if (err)
        return err;
    err = choose_field(&fields, ordinal, &field);
    limefile_fields_release(&fields);
    if (!err)
        err = gauge_field_open(g, &field);
    else if (err != LIMEFILE_E_GAUGE_SEVERAL && limefile_index_fault(priv->index))
        err = limefile_index_fault(priv->index)->code;
    if (!err)
        err = read_lfn(g, field.lfn_ordinal);
    if (!err)
        err = read_info(g, &field);
    read_sequence(g);
    return err ? err : read_stated(g, &field);
}

/* ---- writing ---- */

/* Appends a record with its padding to `out`; data NULL: only its header. */
static int add_record(struct limefile_memory *out, const char *type, const void *data,
                      uint64_t bytes, bool mb, bool me)
{
    static const char zeros[LIMEFILE_ALIGN];
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    int err = limefile_header_init(&header, type, strlen(type), bytes, mb, me);
    if (!err)
        err = limefile_header_encode(&header, raw);
    if (!err)
        err = limefile_write_full(&out->source, raw, sizeof raw, out->size);
    if (!err && data)
        err = limefile_write_full(&out->source, data, (size_t)bytes, out->size);
    if (!err && data)
        err = limefile_write_full(&out->source, zeros, limefile_padding(bytes), out->size);
    return err;
}

static int add_ildg_format(const struct limefile_gauge_image *image,
                           struct limefile_memory *out)
{
    const uint64_t *l = image->sites.extent;
    char text[FORMAT_TEXT_MAX];
    int n = snprintf(text, sizeof text,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<ildgFormat xmlns=\"http://www.lqcd.org/ildg\"\n"
                     "            xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n"
                     "            xsi:schemaLocation=\"http://www.lqcd.org/ildg "
                     "http://www.lqcd.org/ildg/filefmt.xsd\">\n"
                     "  <version>1.0</version>\n  <field>su3gauge</field>\n"
                     "  <precision>%u</precision>\n  <lx>%llu</lx>\n  <ly>%llu</ly>\n"
                     "  <lz>%llu</lz>\n  <lt>%llu</lt>\n</ildgFormat>\n",
                     image->form.precision, (unsigned long long)l[0], (unsigned long long)l[1],
                     (unsigned long long)l[2], (unsigned long long)l[3]);
    return add_record(out, "ildg-format", text, (uint64_t)n, true, false);
}

static int add_header(struct limefile_gauge_image *image, struct limefile_memory *out)
{
    const struct limefile_gauge_options *opts = &image->options;
    int err = 0;
    if (opts->text && opts->text_type)
        err = add_record(out, opts->text_type, opts->text, strlen(opts->text), true, true);
    if (!err)
        err = add_ildg_format(image, out);
    if (!err && opts->lfn && *opts->lfn)
        err = add_record(out, "ildg-data-lfn", opts->lfn, strlen(opts->lfn), false, false);
    return err ? err
               : add_record(out, "ildg-binary-data", NULL, image->data_bytes, false,
                            opts->without_checksum);
}

/* The data need no padding: their size is a multiple of 8 bytes. */
static int build_trailer(struct limefile_gauge_image *image,
                         const struct limefile_gauge_totals *totals)
{
    struct limefile_memory memory;
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(&totals->image.scidac, xml);
    limefile_memory_init(&memory);
    int err = add_record(&memory, "scidac-checksum", xml, n, false, true);
    if (!err) {
        free(image->trailer);
        image->trailer = memory.data;
        image->trailer_bytes = memory.size;
        limefile_memory_init(&memory);
    }
    limefile_memory_release(&memory);
    return err;
}

static int make_ildg_header(struct limefile_gauge_image *image,
                            const struct limefile_gauge_totals *totals)
{
    struct limefile_memory memory;
    limefile_memory_init(&memory);
    int err = add_header(image, &memory);
    unsigned char *header = err ? NULL : gauge_make_header(image, memory.size);
    if (header)
        memcpy(header, memory.data, memory.size);
    else if (!err)
        err = -ENOMEM;
    limefile_memory_release(&memory);
    return err || !totals ? err : build_trailer(image, totals);
}

const struct gauge_format gauge_ildg = {
    .name = "ildg",
    .make_header = make_ildg_header,
    .rows_min = 3,
    .extent_max = UINT64_MAX,
};
