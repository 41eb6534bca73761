/* field.c - describe one binary record by its metadata: its lattice, sites and length */
#define _GNU_SOURCE
#include "field.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DIRECTIONS = 4, COLOURS = 3, SPINS = 4 };

/* ---- names of gauge fields ---- */

static const struct {
    const char *letters;
    enum limefile_group group;
    unsigned least, step; /* N is at least `least` and a multiple of `step` */
} groups[] = {
    {"su", LIMEFILE_GROUP_SU, 2, 1},
    {"so", LIMEFILE_GROUP_SO, 2, 1},
    {"sp", LIMEFILE_GROUP_SP, 4, 2},
    {"u", LIMEFILE_GROUP_U, 1, 1},
};

/* Returns true for "#x1" and "_x1": '#' or '_', then letters or digits, at least one. */
static bool is_variant(const char *text)
{
    static const char alphanumeric[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = *text == '#' || *text == '_' ? strspn(text + 1, alphanumeric) : 0;
    return n && text[1 + n] == '\0';
}

/* Parses the text after the letters of a group: "3gauge". */
static bool parse_size(const char *text, struct limefile_gaugename *out)
{
    static const char word[] = "gauge";
    size_t digits = strspn(text, "0123456789");
    const char *end = text + digits;
    if (digits == 0 || digits > 4 || *text == '0' ||
        strncasecmp(end, word, sizeof word - 1) != 0)
        return false;
    end += sizeof word - 1;
    out->n = (unsigned)strtoul(text, NULL, 10);
    out->variant = *end != '\0';
    return !out->variant || (digits == 1 && is_variant(end));
}

bool limefile_gaugename_parse(const char *field, struct limefile_gaugename *out)
{
    *out = (struct limefile_gaugename){.group = LIMEFILE_GROUP_NONE};
    if (strcasecmp(field, "u1phase") == 0) {
        *out = (struct limefile_gaugename){.group = LIMEFILE_GROUP_U1_PHASE, .n = 1};
        return true;
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        struct limefile_gaugename gauge = {.group = groups[i].group};
        size_t n = strlen(groups[i].letters);
        if (strncasecmp(field, groups[i].letters, n) != 0 || !parse_size(field + n, &gauge))
            continue;
        bool special = gauge.group == LIMEFILE_GROUP_SU || gauge.group == LIMEFILE_GROUP_SO;
        if (gauge.n < groups[i].least || gauge.n % groups[i].step ||
            (gauge.variant && !special))
            return false;
        *out = gauge;
        return true;
    }
    return false;
}

/* Returns how many real numbers a site has: four links of N x N complex numbers. Returns 0 for
 * other groups and for variants: the known ILDG documents define no layout for them. */
static uint64_t gauge_reals(const char *field)
{
    struct limefile_gaugename gauge;
    if (!limefile_gaugename_parse(field, &gauge) || gauge.group != LIMEFILE_GROUP_SU ||
        gauge.variant)
        return 0;
    return UINT64_C(2) * DIRECTIONS * gauge.n * gauge.n;
}

/* ---- sites ---- */

static uint64_t datum_bytes(const struct limefile_scidac_record *record)
{
    return record->typesize * record->datacount; /* the parser excludes overflow */
}

/* Returns the bytes of a site by its ILDG or ETMC format; 0: unknown. */
static uint64_t site_length(enum limefile_fieldkind kind, const struct limefile_ildg *format)
{
    uint64_t reals = 2 * (format->components ? format->components : SPINS * COLOURS);
    if (kind == LIMEFILE_KIND_GAUGE)
        reals = gauge_reals(format->field);
    return reals * format->precision / 8;
}

static void copy_numbers(struct limefile_field *f, const struct limefile_scidac_record *record)
{
    f->datacount = record->datacount;
    f->colors = record->colors;
    f->spins = record->spins;
}

static void describe_by_format(struct limefile_field *f, enum limefile_fieldkind kind,
                               const struct field_metadata *meta)
{
    memcpy(f->name, meta->format->field, sizeof f->name);
    f->precision = meta->format->precision;
    f->lattice = meta->format->lattice;
    f->site_bytes = site_length(kind, meta->format);
    if (f->site_bytes == 0 && meta->record)
        f->site_bytes = datum_bytes(meta->record);
    if (meta->record)
        copy_numbers(f, meta->record);
    f->descriptions_differ = meta->record && (meta->record->recordtype != LIMEFILE_FIELD ||
                                              datum_bytes(meta->record) != f->site_bytes);
    bool part = meta->file && meta->file->volfmt != 0; /* not all sites are in the file */
    f->sites = part ? 0 : limefile_lattice_sites(&f->lattice);
    /* If the metadata do not state the size of a site, it follows from the record's length. */
    if (f->site_bytes == 0 && f->sites && f->record.bytes % f->sites == 0)
        f->site_bytes = f->record.bytes / f->sites;
}

/* Sets box and sites of a hypercube. If the box does not fit into the file's lattice, its sites
 * have no ranks, and f->lattice.dims becomes 0. */
static void describe_box(struct limefile_field *f, const struct limefile_scidac_record *record)
{
    f->is_box = true;
    f->sites = 1;
    bool inside = f->lattice.dims == record->box_dims;
    for (unsigned i = 0; i < record->box_dims; i++) {
        f->lower[i] = record->lower[i];
        f->upper[i] = record->upper[i];
        f->sites *= record->upper[i] - record->lower[i] + 1;
        inside = inside && record->upper[i] < f->lattice.extent[i];
    }
    if (!inside)
        f->lattice.dims = 0;
}

static void describe_by_record(struct limefile_field *f, const struct field_metadata *meta)
{
    const struct limefile_scidac_record *record = meta->record;
    bool part = meta->file && meta->file->volfmt != 0;
    memcpy(f->name, record->datatype, sizeof f->name);
    f->precision =
        record->precision ? record->precision : limefile_datatype_precision(record->datatype);
    f->site_bytes = datum_bytes(record);
    copy_numbers(f, record);
    if (record->recordtype == LIMEFILE_GLOBAL) {
        f->sites = 1;
        return;
    }
    if (meta->file)
        f->lattice = meta->file->lattice;
    if (record->recordtype == LIMEFILE_HYPERCUBE)
        describe_box(f, record);
    else
        f->sites = limefile_lattice_sites(&f->lattice);
    if (part)
        f->sites = 0;
}

bool field_is_links(const struct limefile_field *f)
{
    struct limefile_siteshape site;
    limefile_siteshape_derive(f, &site);
    return limefile_siteshape_is_links(&site);
}

bool field_is_grid(const struct limefile_field *f)
{
    return !f->format_ordinal &&
           (f->kind == LIMEFILE_KIND_SCIDAC || f->kind == LIMEFILE_KIND_GAUGE) &&
           strncmp(f->name, "GRID_", 5) == 0;
}

/* Grid's metadata are incomplete: for a checkerboard they state the whole lattice, and for a
 * tensor without a name in Grid they state the size of one part. So the record's length
 * decides. A checkerboard is stored as a lattice with half the extent in x. In a lattice of
 * five dimensions, x is the second one. */
static void describe_by_length(struct limefile_field *f)
{
    unsigned x = f->lattice.dims > 4 ? 1 : 0;
    uint64_t whole, bytes = f->record.bytes;
    f->datacount = 0; /* typesize may not be the size of one datum */
    if (f->is_box || f->sites == 0 || bytes == 0 ||
        __builtin_mul_overflow(f->sites, f->site_bytes, &whole))
        return;
    if (bytes % whole == 0)
        f->site_bytes = bytes / f->sites;
    if (bytes != whole / 2 || f->lattice.extent[x] % 2)
        return;
    f->is_box = f->is_checkerboard = true;
    f->sites /= 2;
    for (unsigned i = 0; i < f->lattice.dims; i++) {
        f->lower[i] = 0;
        f->upper[i] = f->lattice.extent[i] / (i == x ? 2 : 1) - 1;
    }
}

int field_describe(struct limefile_field *f, enum limefile_fieldkind kind,
                   const struct field_metadata *meta)
{
    struct limefile_field out = *f;
    out.kind = kind;
    if (meta->format)
        describe_by_format(&out, kind, meta);
    else
        describe_by_record(&out, meta);
    if (field_is_grid(&out))
        describe_by_length(&out);
    if (__builtin_mul_overflow(out.sites, out.site_bytes, &out.expected) ||
        out.expected > LIMEFILE_BYTES_MAX)
        return LIMEFILE_E_XML_VALUE;
    /* If only the size of a site is known, a site's rank is its position in the record. */
    if (kind == LIMEFILE_KIND_SCIDAC && !meta->format && !out.is_box && !meta->file &&
        out.record.bytes % out.site_bytes == 0)
        out.sites = out.record.bytes / out.site_bytes;
    if (out.kind == LIMEFILE_KIND_SCIDAC && meta->record && field_is_links(&out))
        out.kind = LIMEFILE_KIND_GAUGE;
    *f = out;
    return 0;
}

bool field_agrees_with_record(const struct limefile_field *f, const struct field_metadata *meta)
{
    const struct limefile_scidac_record *record = meta->record;
    if (!record)
        return true;
    return record->recordtype == LIMEFILE_FIELD && datum_bytes(record) == f->site_bytes &&
           (record->precision == 0 || record->precision == f->precision);
}

bool field_agrees_with_file(const struct limefile_field *f, const struct field_metadata *meta)
{
    if (!meta->file)
        return true;
    const struct limefile_lattice *lattice = &meta->file->lattice;
    return lattice->dims == f->lattice.dims &&
           memcmp(lattice->extent, f->lattice.extent,
                  lattice->dims * sizeof *lattice->extent) == 0;
}

bool limefile_field_is_summable(const struct limefile_field *f)
{
    uint64_t bytes;
    if (f->sites == 0 || f->site_bytes == 0 || (f->is_box && f->lattice.dims == 0))
        return false;
    return !__builtin_mul_overflow(f->sites, f->site_bytes, &bytes) && bytes == f->record.bytes;
}
