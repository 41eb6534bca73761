/* infotext.c - lime info for people */
#define _GNU_SOURCE
#include "info.h"
#include "cells.h"
#include "tell.h"
#include "text.h"
#include "tool.h"

#include <inttypes.h>
#include <string.h>

enum { FINDINGS_TOLD = 20 };

static const char *kind_name(enum limefile_fieldkind kind)
{
    switch (kind) {
    case LIMEFILE_KIND_GAUGE:
        return "gauge configuration";
    case LIMEFILE_KIND_PROPAGATOR:
        return "propagator";
    case LIMEFILE_KIND_SOURCE:
        return "source";
    case LIMEFILE_KIND_SCIDAC:
        return "lattice field";
    case LIMEFILE_KIND_GLOBAL:
        return "global data";
    case LIMEFILE_KIND_UNKNOWN:
        break;
    }
    return "binary data";
}

/* "24^3 x 48"; all extents where they are not of that form. */
static const char *lattice_text(const struct limefile_lattice *lattice, char out[256])
{
    unsigned dims = lattice->dims;
    bool cube = dims >= 3;
    for (unsigned i = 1; cube && i + 1 < dims; i++)
        cube = lattice->extent[i] == lattice->extent[0];
    if (cube) {
        snprintf(out, 256, "%" PRIu64 "^%u x %" PRIu64, lattice->extent[0], dims - 1,
                 lattice->extent[dims - 1]);
        return out;
    }
    size_t n = 0;
    for (unsigned i = 0; i < dims; i++)
        n += (size_t)snprintf(out + n, 256 - n, "%s%" PRIu64, i ? " x " : "",
                              lattice->extent[i]);
    return out;
}

static void tell_lattice(const struct limefile_field *f)
{
    char text[256], box[LIMEFILE_DIMS_MAX * 44] = "";
    size_t n = 0;
    if (f->lattice.dims)
        tell_value("lattice", "%s", lattice_text(&f->lattice, text));
    for (unsigned i = 0; f->boxed && !f->halved && i < f->lattice.dims; i++)
        n += (size_t)snprintf(box + n, sizeof box - n, "%s%" PRIu64 "..%" PRIu64, i ? ", " : "",
                              f->lower[i], f->upper[i]);
    if (f->boxed && f->lattice.dims)
        tell_value("only sites", "%s", f->halved ? "every second, a checkerboard" : box);
}

static void tell_size(const struct limefile_field *f)
{
    char have[64], want[64];
    if (f->expected && f->expected != f->record.bytes)
        tell_value("size", "%s, but should be %s", tell_bytes(f->record.bytes, have),
                   tell_bytes(f->expected, want));
    else
        tell_value("size", "%s", tell_bytes(f->record.bytes, have));
}

static void tell_checksum(const struct limefile_field *f)
{
    if (f->has_checksum)
        tell_value("checksum", "%08x %08x, not verified", (unsigned)f->checksum.suma,
                   (unsigned)f->checksum.sumb);
    else if (f->by_checksum || f->kind != LIMEFILE_KIND_UNKNOWN)
        tell_value("checksum", "%s", f->by_checksum ? "cannot be understood" : "none");
}

/* They are told once: what is harmful in them goes. */
static void tell_facts(const struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->fact[i];
        limefile_text_defuse(fact->name, "");
        limefile_text_defuse(fact->value, "");
        if (*fact->name)
            printf("  %-*s  %s\n", TELL_WIDTH, fact->name, fact->value);
        else
            printf("  %s\n", fact->value);
    }
    if (facts->cut)
        puts("  ...");
}

/* Where there are several fields; the first one is told with the file. */
static void tell_lfn(struct info *info, const struct limefile_field *f)
{
    char lfn[LIMEFILE_LFN_MAX];
    if (info->fields.count > 1 && info_lfn(info, f->by_lfn, lfn))
        tell_value("LFN", "%s", lfn);
}

/* `user`: ordinal of the scidac-record-xml that belongs to it, or 0. */
static int tell_field(struct info *info, const struct limefile_field *f, uint64_t user)
{
    struct limefile_record record;
    struct limefile_scidac_record said;
    int status = TOOL_GOOD;
    bool has_date = info_private_record(info, f->by_record, &said) && said.date[0];
    info->facts.count = 0;
    if (user && limefile_index_get(info->c.index, user, &record) == 0)
        status = info_read_facts(info, &record, FACTS_XML);
    putchar('\n');
    tell_heading("%s%s%s (record %" PRIu64 ")", kind_name(f->kind), f->name[0] ? " " : "",
                 f->name, f->record.ordinal);
    tell_lattice(f);
    if (f->precision)
        tell_value("precision", "%s, %u bits", f->precision == 64 ? "double" : "single",
                   f->precision);
    tell_size(f);
    tell_checksum(f);
    tell_lfn(info, f);
    if (has_date)
        tell_value("written", "%s", said.date);
    tell_facts(&info->facts);
    facts_release(&info->facts);
    return status;
}

static int tell_info(struct info *info, const struct limefile_record *record)
{
    enum facts_form form;
    const char *title = facts_title(record->type, &form);
    int status = info_read_facts(info, record, form);
    putchar('\n');
    tell_heading("%s (record %" PRIu64 ")", title, record->ordinal);
    tell_facts(&info->facts);
    facts_release(&info->facts);
    return status;
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void tell_file(const struct info *info)
{
    char bytes[64];
    const struct limefile_index *index = info->c.index;
    uint64_t records = limefile_index_count(index);
    uint32_t messages = limefile_index_messages(index);
    tell_heading("%s", info->c.path);
    if (info->fields.by_lfn)
        tell_value("LFN", "%s", info->fields.lfn);
    tell_value("file", "%s, %" PRIu64 " record%s in %" PRIu32 " message%s",
               tell_bytes(limefile_index_size(index), bytes), records, plural(records),
               messages, plural(messages));
}

/* The i-th of all; at most FINDINGS_TOLD are. */
static void tell_finding(struct info *info, const struct limefile_finding *finding, size_t i)
{
    char text[512];
    bool warning = limefile_is_harmless(finding->code);
    info->deviations += !warning;
    if (i == 0 && !info->c.deviations) {
        putchar('\n');
        tell_heading("what is wrong with it");
    }
    if (i >= FINDINGS_TOLD)
        return;
    limefile_finding_text(finding, text, sizeof text);
    printf("  %s%s\n", warning ? "warning: " : "", text);
}

/* Those of the structure are counted only. */
static void tell_structure(const struct info *info)
{
    uint64_t n = info->c.deviations;
    if (n == 0)
        return;
    putchar('\n');
    tell_heading("what is wrong with it");
    printf("  %" PRIu64 " deviation%s of the structure; 'lime check' names all\n", n,
           plural(n));
}

static int tell_findings(struct info *info)
{
    struct limefile_finding finding;
    struct limecheckpoint_findings cells;
    size_t i = 0;
    int got;
    tell_structure(info);
    for (; limefile_fields_finding(&info->fields, i, &finding); i++)
        tell_finding(info, &finding, i);
    limecheckpoint_findings_begin(&cells, info->c.source, info->c.index);
    while ((got = limecheckpoint_findings_next(&cells, &finding)) == 1)
        tell_finding(info, &finding, i++);
    if (i > FINDINGS_TOLD)
        printf("  ... and %zu more; 'lime check' names all\n", i - FINDINGS_TOLD);
    return info_status(info, got);
}

/* Where one begins. Records of it that follow have been told then. */
static int tell_checkpoint(struct info *info, const struct limefile_record *r)
{
    struct limecheckpoint checkpoint;
    if (r->ordinal < info->walk.next)
        return TOOL_GOOD;
    int got = limecheckpoint_next(&info->walk, &checkpoint);
    if (got == 1) {
        putchar('\n');
        cells_tell(&checkpoint);
    }
    return info_status(info, got);
}

/* The user's XML of a record stands before its data; alone, it is told alone. */
static int flush_user(struct info *info, uint64_t *user)
{
    struct limefile_record record;
    uint64_t ordinal = *user;
    *user = 0;
    if (!ordinal || limefile_index_get(info->c.index, ordinal, &record) != 0)
        return TOOL_GOOD;
    return tell_info(info, &record);
}

static int tell_record(struct info *info, const struct limefile_record *r, uint64_t *user)
{
    enum facts_form form;
    struct limefile_field f;
    int status = TOOL_GOOD;
    bool is_field = limefile_fields_of(&info->fields, r->ordinal, &f);
    if (r->mb)
        status = flush_user(info, user);
    if (!status && is_field) {
        status = tell_field(info, &f, *user);
        *user = 0;
    } else if (!status && strcmp(r->type, "scidac-record-xml") == 0) {
        status = flush_user(info, user);
        *user = r->ordinal;
    } else if (!status && cells_is_type(r->type)) {
        status = tell_checkpoint(info, r);
    } else if (!status && facts_title(r->type, &form)) {
        status = tell_info(info, r);
    }
    return status;
}

int info_tell(struct info *info)
{
    struct limefile_record r;
    uint64_t user = 0;
    int status = TOOL_GOOD;
    tell_file(info);
    limecheckpoint_walk_begin(&info->walk, info->c.source, info->c.index);
    for (uint64_t i = 1; !status && limefile_index_get(info->c.index, i, &r) == 0; i++)
        status = tell_record(info, &r, &user);
    if (!status)
        status = flush_user(info, &user);
    return status ? status : tell_findings(info);
}
