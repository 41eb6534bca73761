/* cmd_info.c - lime info: what is in containers, the way a physicist wants to see it */
#define _GNU_SOURCE
#include "container.h"
#include "facts.h"
#include "jsonout.h"
#include "limeildg.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: lime info [--json] FILE...\n"
    "Tell what lattice data LIME containers hold: configurations, propagators and other\n"
    "fields with lattice, precision, size and checksum, and what their writers say of\n"
    "ensemble, inverter and date.\n"
    "\n"
    "      --json  for scripts: all of it, as JSON\n"
    "      --help  this text\n"
    "\n"
    "It reads metadata, not the data: 'lime check --data' verifies checksums. What\n"
    "contradicts the ILDG and SciDAC formats is named at the end, as 'lime check' names\n"
    "it.\n"
    "\n"
    "Examples:\n"
    "  lime info conf.0042\n"
    "  lime info --json conf.* | jq -r '.[] | .lfn'\n"
    "\n"
    "Exit status: 0 all told; 1 a container ends at a fault (what stands before it is\n"
    "told), or cannot be read; 2 a file cannot be opened or is no container, or wrong\n"
    "usage.\n";

struct info {
    struct container c;
    struct limefile_fields fields;
    struct limefile_finding *findings;
    size_t finding_count, finding_capacity;
    struct facts facts; /* of the record that is being told */
};

enum { WIDTH = 16, WORDS_MAX = 2 * LIMEFILE_LFN_MAX };

/* ---- looking ---- */

static void keep(void *context, const struct limefile_finding *finding)
{
    struct info *info = context;
    if (info->finding_count == info->finding_capacity) {
        size_t more = 2 * info->finding_capacity + 8;
        void *bigger = reallocarray(info->findings, more, sizeof *info->findings);
        if (!bigger)
            return;
        info->findings = bigger;
        info->finding_capacity = more;
    }
    info->findings[info->finding_count++] = *finding;
}

/* What a private record XML says; false if it is not there or cannot be understood. */
static bool private_record(struct info *info, uint64_t ordinal,
                           struct limefile_scidac_record *out)
{
    struct limefile_record r;
    if (!ordinal || limefile_index_get(info->c.index, ordinal, &r) != 0 ||
        r.bytes > LIMEFILE_XML_BYTES_MAX)
        return false;
    size_t n = (size_t)r.bytes;
    char *xml = malloc(n + 1);
    bool good = xml &&
                limefile_read_full(&info->c.file.source, xml, n, r.data_offset) == (ssize_t)n &&
                limefile_scidac_record_parse(xml, n, out) == 0;
    free(xml);
    return good;
}

static int read_facts(struct info *info, const struct limefile_record *record,
                      enum facts_form form)
{
    int err = facts_read(&info->facts, &info->c.file.source, record, form);
    if (err)
        message_code(info->c.path, "read", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

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

static const char *kind_word(enum limefile_fieldkind kind)
{
    static const char *const words[] = {
        [LIMEFILE_KIND_UNKNOWN] = "unknown",       [LIMEFILE_KIND_GAUGE] = "gauge",
        [LIMEFILE_KIND_PROPAGATOR] = "propagator", [LIMEFILE_KIND_SOURCE] = "source",
        [LIMEFILE_KIND_SCIDAC] = "field",          [LIMEFILE_KIND_GLOBAL] = "global",
    };
    return words[kind];
}

/* ---- for people ---- */

/* On a terminal headings stand out. */
__attribute__((format(printf, 1, 2))) static void heading(const char *format, ...)
{
    char text[WORDS_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_defuse(text, "");
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
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_defuse(text, "");
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
    for (unsigned i = 0; f->boxed && i < f->lattice.dims; i++)
        n += (size_t)snprintf(box + n, sizeof box - n, "%s%" PRIu64 "..%" PRIu64, i ? ", " : "",
                              f->lower[i], f->upper[i]);
    if (f->boxed && f->lattice.dims)
        tell("only sites", "%s", box);
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

static void tell_facts(const struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->fact[i];
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
    bool has_date = private_record(info, f->by_record, &said) && said.date[0];
    info->facts.count = 0;
    if (user && limefile_index_get(info->c.index, user, &record) == 0)
        status = read_facts(info, &record, FACTS_XML);
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
    int status = read_facts(info, record, form);
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
    char text[256];
    if (!info->finding_count)
        return;
    putchar('\n');
    heading("what is wrong with it");
    for (size_t i = 0; i < info->finding_count; i++) {
        limefile_finding_text(&info->findings[i], text, sizeof text);
        printf("  %s\n", text);
    }
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
    int status = TOOL_GOOD;
    const struct limefile_field *f = limefile_fields_of(&info->fields, r->ordinal);
    if (r->mb)
        status = flush_user(info, user);
    if (!status && f) {
        status = tell_field(info, f, *user);
        *user = 0;
    } else if (!status && strcmp(r->type, "scidac-record-xml") == 0) {
        status = flush_user(info, user);
        *user = r->ordinal;
    } else if (!status && facts_title(r->type, &form)) {
        status = tell_info(info, r);
    }
    return status;
}

static int tell_all(struct info *info)
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

/* ---- for scripts ---- */

static void json_word(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    if (text && *text)
        jsonout_text(stdout, text, strlen(text));
    else
        fputs("null", stdout);
}

/* 0 is null: not known. */
static void json_number(const char *name, uint64_t value)
{
    if (value)
        printf(", \"%s\": %" PRIu64, name, value);
    else
        printf(", \"%s\": null", name);
}

static void json_list(const char *name, const uint64_t *numbers, unsigned count)
{
    printf(", \"%s\": ", name);
    if (!count)
        fputs("null", stdout);
    for (unsigned i = 0; i < count; i++)
        printf("%s%" PRIu64 "%s", i ? ", " : "[", numbers[i], i + 1 == count ? "]" : "");
}

static void json_field(struct info *info, const struct limefile_field *f)
{
    struct limefile_scidac_record said;
    unsigned box = f->boxed ? f->lattice.dims : 0;
    printf("{\"ordinal\": %" PRIu64 ", \"message\": %" PRIu32 ", \"type\": ", f->record.ordinal,
           f->record.message);
    jsonout_text(stdout, f->record.type, f->record.type_len);
    json_word("kind", kind_word(f->kind));
    json_word("name", f->name);
    json_list("lattice", f->lattice.extent, f->lattice.dims);
    json_list("lower", f->lower, box);
    json_list("upper", f->upper, box);
    json_number("precision", f->precision);
    json_number("sites", f->sites);
    json_number("site_bytes", f->site_bytes);
    printf(", \"bytes\": %" PRIu64, f->record.bytes);
    json_number("expected", f->expected);
    fputs(", \"checksum\": ", stdout);
    if (f->has_checksum)
        printf("{\"suma\": \"%08x\", \"sumb\": \"%08x\"}", (unsigned)f->checksum.suma,
               (unsigned)f->checksum.sumb);
    else
        fputs("null", stdout);
    json_word("date", private_record(info, f->by_record, &said) ? said.date : NULL);
    json_number("format_record", f->by_format);
    json_number("private_record", f->by_record);
    json_number("checksum_record", f->by_checksum);
    json_number("lfn_record", f->by_lfn);
    putchar('}');
}

static void json_facts(const struct facts *facts)
{
    fputs("{", stdout);
    bool first = true;
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->fact[i];
        bool again = false; /* the first of a name counts */
        for (size_t j = 0; j < i && !again; j++)
            again = strcmp(facts->fact[j].name, fact->name) == 0;
        if (again)
            continue;
        fputs(first ? "" : ", ", stdout);
        jsonout_text(stdout, fact->name, strlen(fact->name));
        fputs(": ", stdout);
        jsonout_text(stdout, fact->value, strlen(fact->value));
        first = false;
    }
    fputs("}", stdout);
}

static int json_info(struct info *info)
{
    struct limefile_record r;
    enum facts_form form;
    int status = TOOL_GOOD;
    bool first = true;
    fputs("], \"info\": [", stdout);
    for (uint64_t i = 1; !status && limefile_index_get(info->c.index, i, &r) == 0; i++) {
        if (!facts_title(r.type, &form))
            continue;
        status = read_facts(info, &r, form);
        printf("%s{\"ordinal\": %" PRIu64 ", \"message\": %" PRIu32 ", \"type\": ",
               first ? "\n " : ",\n ", r.ordinal, r.message);
        jsonout_text(stdout, r.type, r.type_len);
        fputs(", \"facts\": ", stdout);
        json_facts(&info->facts);
        putchar('}');
        facts_release(&info->facts);
        first = false;
    }
    return status;
}

static int json_all(struct info *info)
{
    const struct limefile_index *index = info->c.index;
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, info->c.path, strlen(info->c.path));
    printf(", \"size\": %" PRIu64 ", \"records\": %" PRIu64 ", \"messages\": %" PRIu32
           ", \"fault\": ",
           limefile_index_size(index), limefile_index_count(index),
           limefile_index_messages(index));
    jsonout_finding(stdout, limefile_index_fault(index));
    json_word("lfn", info->fields.lfn);
    fputs(", \"deviations\": [", stdout);
    for (size_t i = 0; i < info->finding_count; i++) {
        fputs(i ? ",\n " : "\n ", stdout);
        jsonout_finding(stdout, &info->findings[i]);
    }
    fputs("], \"fields\": [", stdout);
    for (size_t i = 0; i < info->fields.count; i++) {
        fputs(i ? ",\n " : "\n ", stdout);
        json_field(info, &info->fields.field[i]);
    }
    int status = json_info(info);
    fputs("]}", stdout);
    return status;
}

/* What stands in the place of what cannot be told. */
static void json_failure(const char *path)
{
    fputs("{\"file\": ", stdout);
    jsonout_text(stdout, path, strlen(path));
    fputs(", \"error\": \"cannot be opened, or no container\", \"fields\": [], \"info\": []}",
          stdout);
}

/* ---- files ---- */

static int info_of(struct info *info, bool json)
{
    int err =
        limefile_fields_build(&info->c.file.source, info->c.index, keep, info, &info->fields);
    if (err) {
        message_code(info->c.path, "read", err);
        if (json)
            json_failure(info->c.path);
        return TOOL_BAD;
    }
    int status = json ? json_all(info) : tell_all(info);
    limefile_fields_release(&info->fields);
    int fault = container_fault_message(&info->c);
    return status > fault ? status : fault;
}

static int info_one(const char *path, bool json)
{
    struct info *info = calloc(1, sizeof *info);
    if (!info) {
        message_code(path, "info", -ENOMEM);
        return TOOL_BAD;
    }
    int status = container_open(&info->c, path);
    if (status == TOOL_GOOD) {
        status = info_of(info, json);
        container_close(&info->c);
    } else if (json) {
        json_failure(path);
    }
    free(info->findings);
    free(info);
    return status;
}

static int info_all(int count, char **paths, bool json)
{
    bool several = count > 1;
    int worst = TOOL_GOOD;
    if (json && several)
        fputs("[", stdout);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            fputs(json ? ",\n" : "\n\n", stdout);
        int status = info_one(paths[i], json);
        worst = status > worst ? status : worst;
    }
    if (json)
        fputs(several ? "]\n" : "\n", stdout);
    return worst;
}

static int run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    bool json = false;
    for (int opt; (opt = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (opt != 'j')
            return opt == 'H' ? print_help(&cmd_info) : option_error(&cmd_info, argv);
        json = true;
    }
    if (optind == argc)
        return usage_error(&cmd_info, "no file named");
    return info_all(argc - optind, argv + optind, json);
}

const struct command cmd_info = {"info", "lattice, precision, checksums, ensemble", help, run};
