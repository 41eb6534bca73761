/* infotext.c - lime info for people */
#define _GNU_SOURCE
#include "info.h"
#include "text.h"
#include "tool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 16, WORDS_MAX = 2 * LIMEFILE_LFN_MAX, FINDINGS_TOLD = 20 };

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

/* What is said, harmless. */
static void say(char text[WORDS_MAX], const char *format, va_list args)
{
    vsnprintf(text, WORDS_MAX, format, args);
    limefile_text_defuse(text, "");
}

/* On a terminal headings stand out. */
__attribute__((format(printf, 1, 2))) static void heading(const char *format, ...)
{
    char text[WORDS_MAX];
    va_list args;
    va_start(args, format);
    say(text, format, args);
    va_end(args);
    const char *off = getenv("NO_COLOR");
    bool bold = isatty(STDOUT_FILENO) && !(off && *off);
    printf("%s%s%s\n", bold ? "\033[1m" : "", text, bold ? "\033[m" : "");
}

/* A name and what is to be said of it. */
__attribute__((format(printf, 2, 3))) static void tell(const char *name, const char *format,
                                                       ...)
{
    char text[WORDS_MAX];
    va_list args;
    va_start(args, format);
    say(text, format, args);
    va_end(args);
    printf("  %-*s  %s\n", WIDTH, name, text);
}

static const char *bytes_text(uint64_t bytes, char out[64])
{
    char human[NUMBER_HUMAN_MAX];
    if (bytes < 1024)
        snprintf(out, 64, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(out, 64, "%s (%" PRIu64 " bytes)", number_human(bytes, human), bytes);
    return out;
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
        tell("lattice", "%s", lattice_text(&f->lattice, text));
    for (unsigned i = 0; f->boxed && !f->halved && i < f->lattice.dims; i++)
        n += (size_t)snprintf(box + n, sizeof box - n, "%s%" PRIu64 "..%" PRIu64, i ? ", " : "",
                              f->lower[i], f->upper[i]);
    if (f->boxed && f->lattice.dims)
        tell("only sites", "%s", f->halved ? "every second, a checkerboard" : box);
}

static void tell_size(const struct limefile_field *f)
{
    char have[64], want[64];
    if (f->expected && f->expected != f->record.bytes)
        tell("size", "%s, but should be %s", bytes_text(f->record.bytes, have),
             bytes_text(f->expected, want));
    else
        tell("size", "%s", bytes_text(f->record.bytes, have));
}

static void tell_checksum(const struct limefile_field *f)
{
    if (f->has_checksum)
        tell("checksum", "%08x %08x, not verified", (unsigned)f->checksum.suma,
             (unsigned)f->checksum.sumb);
    else if (f->by_checksum || f->kind != LIMEFILE_KIND_UNKNOWN)
        tell("checksum", "%s", f->by_checksum ? "cannot be understood" : "none");
}

/* They are told once: what is harmful in them goes. */
static void tell_facts(const struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->fact[i];
        limefile_text_defuse(fact->name, "");
        limefile_text_defuse(fact->value, "");
        if (*fact->name)
            printf("  %-*s  %s\n", WIDTH, fact->name, fact->value);
        else
            printf("  %s\n", fact->value);
    }
    if (facts->cut)
        puts("  ...");
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
    heading("%s%s%s (record %" PRIu64 ")", kind_name(f->kind), f->name[0] ? " " : "", f->name,
            f->record.ordinal);
    tell_lattice(f);
    if (f->precision)
        tell("precision", "%s, %u bits", f->precision == 64 ? "double" : "single",
             f->precision);
    tell_size(f);
    tell_checksum(f);
    if (has_date)
        tell("written", "%s", said.date);
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
    heading("%s (record %" PRIu64 ")", title, record->ordinal);
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
    heading("%s", info->c.path);
    if (info->fields.by_lfn)
        tell("LFN", "%s", info->fields.lfn);
    tell("file", "%s, %" PRIu64 " record%s in %" PRIu32 " message%s",
         bytes_text(limefile_index_size(index), bytes), records, plural(records), messages,
         plural(messages));
}

static void tell_findings(const struct info *info)
{
    struct limefile_finding finding;
    char text[256];
    size_t i = 0;
    for (; limefile_fields_finding(&info->fields, i, &finding); i++) {
        if (i == 0) {
            putchar('\n');
            heading("what is wrong with it");
        }
        if (i >= FINDINGS_TOLD)
            continue;
        limefile_finding_text(&finding, text, sizeof text);
        printf("  %s\n", text);
    }
    if (i > FINDINGS_TOLD)
        printf("  ... and %zu more; 'lime check' names all\n", i - FINDINGS_TOLD);
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
    for (uint64_t i = 1; !status && limefile_index_get(info->c.index, i, &r) == 0; i++)
        status = tell_record(info, &r, &user);
    if (!status)
        status = flush_user(info, &user);
    tell_findings(info);
    return status;
}
