/* field.c - what metadata say of one binary record: its lattice, its sites, its length */
#define _GNU_SOURCE
#include "field.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    DIRECTIONS = 4,
    COLOURS = 3,
    SPINS = 4,
};

/* "su3gauge": 3; 0 if it is not called so. */
static unsigned gauge_colours(const char *field)
{
    char *end;
    if (strncasecmp(field, "su", 2) != 0 || field[2] < '1' || field[2] > '9')
        return 0;
    unsigned long colours = strtoul(field + 2, &end, 10);
    return strcasecmp(end, "gauge") == 0 && colours <= 100 ? (unsigned)colours : 0;
}

static uint64_t datum_bytes(const struct limefile_scidac_record *record)
{
    return record->typesize * record->datacount; /* fits: see the parser */
}

/* The bytes of a site by its ILDG or ETMC format; 0: it does not tell. */
static uint64_t format_bytes(enum limefile_fieldkind kind, const struct limefile_ildg *format)
{
    uint64_t reals = 2 * (format->components ? format->components : SPINS * COLOURS);
    if (kind == LIMEFILE_KIND_GAUGE) {
        uint64_t n = gauge_colours(format->field);
        reals = 2 * DIRECTIONS * n * n;
    }
    return reals * format->precision / 8;
}

static void describe_by_format(struct limefile_field *f, enum limefile_fieldkind kind,
                               const struct field_words *words)
{
    memcpy(f->name, words->format->field, sizeof f->name);
    f->precision = words->format->precision;
    f->lattice = words->format->lattice;
    f->site_bytes = format_bytes(kind, words->format);
    if (f->site_bytes == 0 && words->record)
        f->site_bytes = datum_bytes(words->record);
    f->disputed = words->record && (words->record->recordtype != LIMEFILE_FIELD ||
                                    datum_bytes(words->record) != f->site_bytes);
    bool part = words->file && words->file->volfmt != 0; /* of the lattice */
    f->sites = part ? 0 : limefile_lattice_sites(&f->lattice);
    /* Of a field that we do not know the sites tell it: it is all of them. */
    if (f->site_bytes == 0 && f->sites && f->record.bytes % f->sites == 0)
        f->site_bytes = f->record.bytes / f->sites;
}

/* A box of another lattice than the file's is no box of it: its sites have no ranks. */
static void describe_box(struct limefile_field *f, const struct limefile_scidac_record *record)
{
    f->boxed = true;
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

static void describe_by_record(struct limefile_field *f, const struct field_words *words)
{
    const struct limefile_scidac_record *record = words->record;
    bool part = words->file && words->file->volfmt != 0;
    memcpy(f->name, record->datatype, sizeof f->name);
    f->precision = record->precision;
    f->site_bytes = datum_bytes(record);
    if (record->recordtype == LIMEFILE_GLOBAL) {
        f->sites = 1;
        return;
    }
    if (words->file)
        f->lattice = words->file->lattice;
    if (record->recordtype == LIMEFILE_HYPERCUBE)
        describe_box(f, record);
    else
        f->sites = limefile_lattice_sites(&f->lattice);
    if (part)
        f->sites = 0;
}

bool field_is_of_grid(const struct limefile_field *f)
{
    return f->kind == LIMEFILE_KIND_SCIDAC && strncmp(f->name, "GRID_", 5) == 0;
}

/*
 * Grid does not say all: a checkerboard is described as the whole lattice, and a site of a
 * tensor that Grid has no name for as one of its parts. The length tells. A checkerboard is
 * stored and ranked as a lattice of half as many x; a fifth dimension stands before x.
 */
static void describe_by_length(struct limefile_field *f)
{
    unsigned x = f->lattice.dims > 4 ? 1 : 0;
    uint64_t whole, bytes = f->record.bytes;
    if (f->boxed || f->sites == 0 || bytes == 0 ||
        __builtin_mul_overflow(f->sites, f->site_bytes, &whole))
        return;
    if (bytes % whole == 0)
        f->site_bytes = bytes / f->sites;
    if (bytes != whole / 2 || f->lattice.extent[x] % 2)
        return;
    f->boxed = f->halved = true;
    f->sites /= 2;
    for (unsigned i = 0; i < f->lattice.dims; i++) {
        f->lower[i] = 0;
        f->upper[i] = f->lattice.extent[i] / (i == x ? 2 : 1) - 1;
    }
}

int field_describe(struct limefile_field *f, enum limefile_fieldkind kind,
                   const struct field_words *words)
{
    struct limefile_field out = *f;
    out.kind = kind;
    if (words->format)
        describe_by_format(&out, kind, words);
    else
        describe_by_record(&out, words);
    if (field_is_of_grid(&out))
        describe_by_length(&out);
    if (__builtin_mul_overflow(out.sites, out.site_bytes, &out.expected) ||
        out.expected > LIMEFILE_BYTES_MAX)
        return LIMEFILE_E_XML_VALUE;
    /* No lattice is known, but a site is: its rank is its place, whatever the lattice. */
    if (kind == LIMEFILE_KIND_SCIDAC && !words->format && !out.boxed && !words->file &&
        out.record.bytes % out.site_bytes == 0)
        out.sites = out.record.bytes / out.site_bytes;
    *f = out;
    return 0;
}

bool field_agrees_with_record(const struct limefile_field *f, const struct field_words *words)
{
    const struct limefile_scidac_record *record = words->record;
    if (!record)
        return true;
    return record->recordtype == LIMEFILE_FIELD && datum_bytes(record) == f->site_bytes &&
           (record->precision == 0 || record->precision == f->precision);
}

bool field_agrees_with_file(const struct limefile_field *f, const struct field_words *words)
{
    if (!words->file)
        return true;
    const struct limefile_lattice *lattice = &words->file->lattice;
    return lattice->dims == f->lattice.dims &&
           memcmp(lattice->extent, f->lattice.extent,
                  lattice->dims * sizeof *lattice->extent) == 0;
}

bool limefile_field_is_summable(const struct limefile_field *f)
{
    uint64_t bytes;
    if (f->sites == 0 || f->site_bytes == 0 || (f->boxed && f->lattice.dims == 0))
        return false;
    return !__builtin_mul_overflow(f->sites, f->site_bytes, &bytes) && bytes == f->record.bytes;
}
