/* cmd_info.c - lime info: describe the fields, metadata and checkpoints in containers */
#define _GNU_SOURCE
#include "checkpoint.h"
#include "container.h"
#include "facts.h"
#include "files.h"
#include "info_table.h"
#include "limecheckpoint.h"
#include "limeexport.h"
#include "limefile.h"
#include "limeildg.h"
#include "text.h"
#include "tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct info {
    struct container c;
    struct limefile_fields fields;
    struct facts facts;              /* of the record that is being printed */
    struct limecheckpoint_walk walk; /* the checkpoints that are not printed yet */
    uint64_t deviations;             /* number found so far, warnings excluded */
    struct file_task *task;
};

static const char help[] =
    "Usage: lime info [OPTION]... FILE...\n"
    "       lime info [OPTION]... -r DIR...\n"
    "       lime info [OPTION]... --files-from LIST [-0]\n"
    "Describe what LIME containers contain: configurations, propagators and other\n"
    "fields with lattice, precision, size, checksum, ensemble, inverter and date;\n"
    "checkpoints of particles with domain, cells, step and fields.\n"
    "\n"
    "      --table            print a table with a line for each configuration: what\n"
    "                         its program wrote, '-' for a value that is missing\n"
    "      --columns NAMES    the table's columns, separated by commas: file,\n"
    "                         status, record, type, lattice, precision, bytes, beta,\n"
    "                         kappa, mu, mass, csw, u0, trajectory, plaquette,\n"
    "                         linktrace, checksum, sums, ensemble, program, date,\n"
    "                         lfn, or info:NAME for a value NAME in the metadata\n"
    "      --sort COLUMN      sort the lines: numbers by value, other texts in\n"
    "                         natural order; -COLUMN: descending\n"
    "      --csv, --tsv       print the table with commas or tabs, for scripts\n"
    "      --bytes            print sizes in bytes, not as 145K\n" FILES_HELP "\n"
    "lime info reads metadata, not the data: 'lime check --data' verifies checksums.\n"
    "Deviations from the ILDG and SciDAC formats, and bad indexes of cells, are\n"
    "printed at the end, as by 'lime check'. FILE may also be a container in a\n"
    "limefs mount, or a NERSC, MILC or openQCD file.\n"
    "\n"
    "Examples:\n"
    "  lime info conf.0042\n"
    "  lime info --json conf.* | jq -r .lfn\n"
    "  lime info --table --sort trajectory -r /data/runs\n"
    "\n"
    "Exit status, the worst of all files: 0 good; 1 structure or metadata are bad\n"
    "(what can be read is printed); 2 a file cannot be read or is not a container,\n"
    "or wrong usage.\n";

/* Parses the scidac-private-record-xml with this ordinal, in which QIO describes a field.
 * Returns false if the ordinal is 0, or the record cannot be read or parsed. */
static bool read_private_record(struct info *info, uint64_t ordinal,
                                struct limefile_scidac_record *out)
{
    struct limefile_record r;
    if (!ordinal || limefile_index_get(info->c.index, ordinal, &r) != 0 ||
        r.bytes > LIMEFILE_XML_BYTES_MAX)
        return false;
    char *xml;
    size_t n = (size_t)r.bytes;
    bool good = limefile_record_read_text(info->c.source, &r, n, &xml) == 0 &&
                limefile_scidac_record_parse(xml, n, out) == 0;
    free(xml);
    return good;
}

/* Reads the LFN in a record. Returns false if the ordinal is 0 or the LFN is not valid. */
static bool info_lfn(struct info *info, uint64_t ordinal, char out[LIMEFILE_LFN_MAX])
{
    struct limefile_record r;
    return ordinal && limefile_index_get(info->c.index, ordinal, &r) == 0 &&
           limefile_record_lfn(info->c.source, &r, out) == 1;
}

/* Returns the exit status for a code; prints a message if it is an error (negative). */
static int info_status(struct info *info, int code)
{
    if (code < 0)
        message_code(info->c.path, "read", code);
    return code < 0 ? TOOL_UNUSABLE : TOOL_GOOD;
}

/* Returns the fault that ends the container, or a finding that it is empty; else NULL. */
static const struct limefile_finding *info_fault(const struct info *info)
{
    static const struct limefile_finding empty = {.code = LIMEFILE_D_EMPTY};
    return limefile_index_size(info->c.index) ? limefile_index_fault(info->c.index) : &empty;
}

/* Returns the exit status for a container. status: that of reading it. */
static int info_exit_status(const struct info *info, int status)
{
    const struct limefile_finding *fault = info_fault(info);
    bool bad = fault || info->deviations;
    if (fault && limefile_is_read_error(fault->code))
        status = TOOL_UNUSABLE;
    return worse_status(status, bad ? TOOL_BAD : TOOL_GOOD);
}

static int info_read_facts(struct info *info, const struct limefile_record *record,
                           enum facts_form form)
{
    return info_status(info, facts_read(&info->facts, info->c.source, record, form));
}

static json_t *array_json(const struct limefile_field *field)
{
    struct limefile_array a;
    char dtype[16] = "|u1";
    if (limefile_array_from_field(field, &a) != 0)
        return json_null();
    if (a.precision)
        snprintf(dtype, sizeof dtype, ">%c%u", a.complex ? 'c' : 'f',
                 a.precision / 8 * (a.complex ? 2 : 1));
    return json_pack("{s:o, s:i, s:s, s:o}", "shape", jsonout_integers(a.shape, a.dims),
                     "lattice_dims", (int)a.lattice, "dtype", dtype, "offset",
                     jsonout_integer(field->record.data_offset));
}

static const struct {
    const char *word, *name; /* for scripts; for people */
} kinds[] = {
    [LIMEFILE_KIND_UNKNOWN] = {"unknown", "binary data"},
    [LIMEFILE_KIND_GAUGE] = {"gauge", "gauge configuration"},
    [LIMEFILE_KIND_PROPAGATOR] = {"propagator", "propagator"},
    [LIMEFILE_KIND_SOURCE] = {"source", "source"},
    [LIMEFILE_KIND_SCIDAC] = {"field", "lattice field"},
    [LIMEFILE_KIND_GLOBAL] = {"global", "global data"},
};

static json_t *checksum_json(const struct limefile_field *f)
{
    if (!f->has_checksum)
        return json_null();
    return json_pack("{s:o, s:o}", "suma", jsonout_hex(f->checksum.suma), "sumb",
                     jsonout_hex(f->checksum.sumb));
}

static json_t *field_json(struct info *info, const struct limefile_field *f)
{
    struct limefile_scidac_record stated;
    char lfn[LIMEFILE_LFN_MAX];
    unsigned box = f->is_box && !f->is_checkerboard ? f->lattice.dims : 0;
    bool has_record = read_private_record(info, f->private_ordinal, &stated);
    bool has_lfn = info_lfn(info, f->lfn_ordinal, lfn);
    return json_pack(
        "{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
        " s:o, s:o, s:o, s:o}",
        "ordinal", jsonout_integer(f->record.ordinal), "message",
        jsonout_integer(f->record.message), "type", jsonout_string(f->record.type), "kind",
        kinds[f->kind].word, "name", jsonout_string_or_null(f->name), "lattice",
        jsonout_integers(f->lattice.extent, f->lattice.dims), "lower",
        jsonout_integers(f->lower, box), "upper", jsonout_integers(f->upper, box), "precision",
        jsonout_integer_or_null(f->precision), "sites", jsonout_integer_or_null(f->sites),
        "site_bytes", jsonout_integer_or_null(f->site_bytes), "bytes",
        jsonout_integer(f->record.bytes), "expected", jsonout_integer_or_null(f->expected),
        "checksum", checksum_json(f), "array", array_json(f), "date",
        jsonout_string_or_null(has_record ? stated.date : NULL), "lfn",
        jsonout_string_or_null(has_lfn ? lfn : NULL), "format_record",
        jsonout_integer_or_null(f->format_ordinal), "private_record",
        jsonout_integer_or_null(f->private_ordinal), "checksum_record",
        jsonout_integer_or_null(f->checksum_ordinal), "lfn_record",
        jsonout_integer_or_null(f->lfn_ordinal));
}

/* Returns the facts as an object. If several facts have the same name, adds only the first. */
static json_t *facts_json(const struct facts *facts)
{
    json_t *object = json_object();
    for (size_t i = 0; i < facts->count; i++) {
        json_t *name = jsonout_string(facts->fact[i].name);
        const char *key = json_string_value(name);
        if (!json_object_get(object, key))
            json_object_set_new(object, key, jsonout_string(facts->fact[i].value));
        json_decref(name);
    }
    return object;
}

static int print_facts_json(struct info *info)
{
    struct limefile_record r;
    enum facts_form form;
    int status = TOOL_GOOD;
    size_t count = 0;
    for (uint64_t i = 1; !status && limefile_index_get(info->c.index, i, &r) == 0; i++) {
        if (!facts_title(r.type, &form))
            continue;
        status = info_read_facts(info, &r, form);
        jsonout_element(count++,
                        json_pack("{s:o, s:o, s:o, s:o}", "ordinal", jsonout_integer(r.ordinal),
                                  "message", jsonout_integer(r.message), "type",
                                  jsonout_string(r.type), "facts", facts_json(&info->facts)));
        facts_release(&info->facts);
    }
    return status;
}

/* Prints the i-th finding, counted from 0. */
typedef void print_finding_fn(struct info *, const struct limefile_finding *, size_t i);

/* Counts a finding that is not a warning; the first one is the file's error. */
static void count_finding(struct info *info, const struct limefile_finding *finding)
{
    if (limefile_is_harmless(finding->code))
        return;
    if (info->deviations++ == 0)
        limefile_finding_text(finding, info->task->error, sizeof info->task->error);
}

/* Calls print for all findings about fields and checkpoints. Sets *count to their number. Adds
 * the number of those that are not warnings to info->deviations. Returns an exit status. */
static int print_findings(struct info *info, print_finding_fn *print, size_t *count)
{
    struct limefile_finding finding;
    struct limecheckpoint_findings checkpoints;
    size_t i = 0;
    int got;
    for (; limefile_fields_finding(&info->fields, i, &finding); i++) {
        count_finding(info, &finding);
        print(info, &finding, i);
    }
    limecheckpoint_findings_begin(&checkpoints, info->c.source, info->c.index);
    for (; (got = limecheckpoint_findings_next(&checkpoints, &finding)) == 1; i++) {
        count_finding(info, &finding);
        print(info, &finding, i);
    }
    *count = i;
    return info_status(info, got);
}

static void finding_to_json(struct info *info, const struct limefile_finding *finding, size_t i)
{
    (void)info;
    jsonout_element(i, jsonout_finding(finding));
}

static int print_checkpoints_json(struct info *info)
{
    struct limecheckpoint checkpoint;
    int got;
    limecheckpoint_walk_begin(&info->walk, info->c.source, info->c.index);
    for (size_t i = 0; (got = limecheckpoint_next(&info->walk, &checkpoint)) == 1; i++)
        jsonout_element(i, checkpoint_json(&checkpoint));
    return info_status(info, got);
}

static int print_info_json(struct info *info, struct file_task *task)
{
    const struct limefile_index *index = info->c.index;
    size_t count;
    json_t *head = json_pack("{s:s*, s:o, s:o, s:o, s:o, s:o}", "format", info->c.format,
                             "size", jsonout_integer(container_size(&info->c)), "records",
                             jsonout_integer(limefile_index_count(index)), "messages",
                             jsonout_integer(limefile_index_messages(index)), "fault",
                             jsonout_finding(info_fault(info)), "lfn",
                             jsonout_string_or_null(info->fields.lfn));
    file_json_begin(task, head);
    fputs(", \"deviations\": [", stdout);
    int status = print_findings(info, finding_to_json, &count);
    fputs("], \"fields\": [", stdout);
    for (size_t i = 0; i < info->fields.count; i++) {
        struct limefile_field field;
        limefile_fields_get(&info->fields, i, &field);
        jsonout_element(i, field_json(info, &field));
    }
    fputs("], \"checkpoints\": [", stdout);
    status = worse_status(status, print_checkpoints_json(info));
    fputs("], \"info\": [", stdout);
    status = worse_status(status, print_facts_json(info));
    fputs("]", stdout);
    return status;
}

enum { FINDINGS_SHOWN = 20 };

/* Formats "24^3 x 48", or all extents if the spatial ones differ. */
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

static void print_lattice(const struct limefile_field *f)
{
    char text[256], box[LIMEFILE_DIMS_MAX * 44] = "";
    size_t n = 0;
    if (f->lattice.dims)
        print_value("lattice", "%s", lattice_text(&f->lattice, text));
    for (unsigned i = 0; f->is_box && !f->is_checkerboard && i < f->lattice.dims; i++)
        n += (size_t)snprintf(box + n, sizeof box - n, "%s%" PRIu64 "..%" PRIu64, i ? ", " : "",
                              f->lower[i], f->upper[i]);
    if (f->is_box && f->lattice.dims)
        print_value("only sites", "%s",
                    f->is_checkerboard ? "every second, a checkerboard" : box);
}

static void print_size(const struct limefile_field *f)
{
    char size[LIMEFILE_SIZE_CHARS];
    if (f->expected && f->expected != f->record.bytes)
        print_value("size", "%" PRIu64 " bytes, but should be %" PRIu64, f->record.bytes,
                    f->expected);
    else
        print_value("size", "%s", limefile_format_bytes(f->record.bytes, size));
}

static void print_checksum(const struct limefile_field *f)
{
    if (f->has_checksum)
        print_value("checksum", "%08x %08x, not verified", (unsigned)f->checksum.suma,
                    (unsigned)f->checksum.sumb);
    else if (f->checksum_ordinal || f->kind != LIMEFILE_KIND_UNKNOWN)
        print_value("checksum", "%s", f->checksum_ordinal ? "cannot be understood" : "none");
}

/* Replaces unsafe characters in the facts, in place, and prints the facts. */
static void print_and_sanitize_facts(const struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->fact[i];
        limefile_text_sanitize(fact->name, "");
        limefile_text_sanitize(fact->value, "");
        if (*fact->name)
            printf("  %-*s  %s\n", NAME_WIDTH, fact->name, fact->value);
        else
            printf("  %s\n", fact->value);
    }
    if (facts->is_truncated)
        puts("  ...");
}

/* Prints the LFN of f if there are several fields. print_file_info() prints the first LFN. */
static void print_field_lfn(struct info *info, const struct limefile_field *f)
{
    char lfn[LIMEFILE_LFN_MAX];
    if (info->fields.count > 1 && info_lfn(info, f->lfn_ordinal, lfn))
        print_value("LFN", "%s", lfn);
}

/* Prints a field. record_xml: ordinal of the scidac-record-xml that belongs to it, or 0. */
static int print_field(struct info *info, const struct limefile_field *f, uint64_t record_xml)
{
    struct limefile_record record;
    struct limefile_scidac_record stated;
    int status = TOOL_GOOD;
    bool has_date = read_private_record(info, f->private_ordinal, &stated) && stated.date[0];
    if (record_xml && limefile_index_get(info->c.index, record_xml, &record) == 0)
        status = info_read_facts(info, &record, FACTS_XML);
    putchar('\n');
    print_heading("%s%s%s (record %" PRIu64 ")", kinds[f->kind].name, f->name[0] ? " " : "",
                  f->name, f->record.ordinal);
    print_lattice(f);
    if (f->precision)
        print_value("precision", "%s, %u bits", f->precision == 64 ? "double" : "single",
                    f->precision);
    print_size(f);
    if (!info->c.format) /* other formats have a checksum in their header */
        print_checksum(f);
    print_field_lfn(info, f);
    if (has_date)
        print_value("written", "%s", stated.date);
    print_and_sanitize_facts(&info->facts);
    facts_release(&info->facts);
    return status;
}

static int print_record_info(struct info *info, const struct limefile_record *record)
{
    enum facts_form form;
    const char *title = facts_title(record->type, &form);
    int status = info_read_facts(info, record, form);
    putchar('\n');
    print_heading("%s (record %" PRIu64 ")", title, record->ordinal);
    print_and_sanitize_facts(&info->facts);
    facts_release(&info->facts);
    return status;
}

static void print_file_info(const struct info *info)
{
    char bytes[LIMEFILE_SIZE_CHARS];
    const struct limefile_index *index = info->c.index;
    uint64_t records = limefile_index_count(index);
    uint32_t messages = limefile_index_messages(index);
    print_heading("%s", info->c.path);
    if (info->fields.lfn_ordinal)
        print_value("LFN", "%s", info->fields.lfn);
    limefile_format_bytes(container_size(&info->c), bytes);
    if (info->c.format)
        print_value("file", "%s, %s", bytes, info->c.format);
    else
        print_value("file", "%s, %" PRIu64 " record%s in %" PRIu32 " message%s", bytes, records,
                    plural(records), messages, plural(messages));
}

/* Prints finding i if i < FINDINGS_SHOWN; before the first problem, also prints a heading. */
static void print_finding(struct info *info, const struct limefile_finding *finding, size_t i)
{
    char text[512];
    if (i == 0 && !info->c.deviations) {
        putchar('\n');
        print_heading("problems");
    }
    if (i >= FINDINGS_SHOWN)
        return;
    limefile_finding_text(finding, text, sizeof text);
    printf("  %s%s\n", limefile_is_harmless(finding->code) ? "warning: " : "", text);
}

/* Prints only the number of deviations of the structure. */
static void print_structure(const struct info *info)
{
    uint64_t n = info->c.deviations;
    if (n == 0)
        return;
    putchar('\n');
    print_heading("problems");
    printf("  %" PRIu64 " deviation%s of the structure; 'lime check' names all\n", n,
           plural(n));
}

static int print_all_findings(struct info *info)
{
    size_t count;
    print_structure(info);
    int status = print_findings(info, print_finding, &count);
    if (count > FINDINGS_SHOWN)
        printf("  ... and %zu more; 'lime check' names all\n", count - FINDINGS_SHOWN);
    return status;
}

/* Prints a checkpoint at its first record; skips its other records. */
static int print_checkpoint_once(struct info *info, const struct limefile_record *r)
{
    struct limecheckpoint checkpoint;
    if (r->ordinal < info->walk.next)
        return TOOL_GOOD;
    int got = limecheckpoint_next(&info->walk, &checkpoint);
    if (got == 1) {
        putchar('\n');
        print_checkpoint(&checkpoint);
    }
    return info_status(info, got);
}

/* Prints a scidac-record-xml that belongs to no field; print_field() prints those of fields.
 * *record_xml: the ordinal of that record, or 0; becomes 0. */
static int print_pending_record_xml(struct info *info, uint64_t *record_xml)
{
    struct limefile_record record;
    uint64_t ordinal = *record_xml;
    *record_xml = 0;
    if (!ordinal || limefile_index_get(info->c.index, ordinal, &record) != 0)
        return TOOL_GOOD;
    return print_record_info(info, &record);
}

/* Prints a record. *record_xml: 0, or the ordinal of a scidac-record-xml that is not printed
 * yet, because its field may follow in the same message. */
static int print_record_text(struct info *info, const struct limefile_record *r,
                             uint64_t *record_xml)
{
    enum facts_form form;
    struct limefile_field f;
    int status = TOOL_GOOD;
    bool is_field = limefile_fields_find(&info->fields, r->ordinal, &f);
    if (r->mb)
        status = print_pending_record_xml(info, record_xml);
    if (!status && is_field) {
        status = print_field(info, &f, *record_xml);
        *record_xml = 0;
    } else if (!status && strcmp(r->type, "scidac-record-xml") == 0) {
        status = print_pending_record_xml(info, record_xml);
        *record_xml = r->ordinal;
    } else if (!status && is_checkpoint_type(r->type)) {
        status = print_checkpoint_once(info, r);
    } else if (!status && facts_title(r->type, &form)) {
        status = print_record_info(info, r);
    }
    return status;
}

static int print_info(struct info *info)
{
    struct limefile_record r;
    uint64_t record_xml = 0;
    int status = TOOL_GOOD;
    print_file_info(info);
    limecheckpoint_walk_begin(&info->walk, info->c.source, info->c.index);
    for (uint64_t i = 1; !status && limefile_index_get(info->c.index, i, &r) == 0; i++)
        status = print_record_text(info, &r, &record_xml);
    if (!status)
        status = print_pending_record_xml(info, &record_xml);
    return status ? status : print_all_findings(info);
}

/* ---- --table ---- */

static struct {
    const char *columns, *sort;
    bool is_table, csv, tsv;
} options;
static struct files_options files;
static struct info_table table;
static int table_status;

static void ignore_finding(struct info *info, const struct limefile_finding *finding, size_t i)
{
    (void)info;
    (void)finding;
    (void)i;
}

/* Writes the lines of a file into the table. source NULL: the file could not be opened. */
static int write_table_lines(struct info *info, struct limefile_source *source, int status,
                             struct file_task *task)
{
    const struct info_table_file file = {
        .path = task->path,
        .status = limefile_verdict_word(status_verdict(status)),
        .format = info->c.format,
        .source = source,
        .index = info->c.index,
        .fields = &info->fields,
    };
    if (files.quiet && status == TOOL_GOOD)
        return status;
    return worse_status(status,
                        info_status(info, info_table_write(&table, &file, task->result)));
}

static int write_info_table(struct info *info, struct file_task *task)
{
    size_t count;
    int status = print_findings(info, ignore_finding, &count);
    return write_table_lines(info, info->c.source, info_exit_status(info, status), task);
}

static void print_info_table(const struct files_results *results, json_t *summary, char *text)
{
    (void)summary;
    (void)text;
    enum table_form form = options.csv ? TABLE_CSV : options.tsv ? TABLE_TSV : TABLE_ALIGNED;
    int err = info_table_print(&table, (const struct info_table_lines *)results->result,
                               results->list->count, form);
    table_status = report_error("--table", "print", err);
}

/* ---- all files ---- */

static int examine_info(struct info *info, struct file_task *task)
{
    int err = limefile_fields_build(info->c.source, info->c.index, &info->fields);
    if (err)
        return info_status(info, err);
    info->deviations = info->c.deviations;
    if (info->deviations)
        snprintf(task->error, sizeof task->error, "%" PRIu64 " deviation%s of the structure",
                 info->deviations, plural(info->deviations));
    int status = task->json         ? print_info_json(info, task)
                 : options.is_table ? write_info_table(info, task)
                                    : print_info(info);
    limefile_fields_release(&info->fields);
    const struct limefile_finding *fault = info_fault(info);
    if (fault)
        message_finding(info->c.path, fault, false);
    return info_exit_status(info, status);
}

static int info_file(struct file_task *task)
{
    struct info info = {.task = task};
    int status = container_open_or_mounted(&info.c, task->path);
    if (status != TOOL_GOOD && options.is_table)
        return write_table_lines(&info, NULL, status, task);
    if (status != TOOL_GOOD)
        return status;
    status = examine_info(&info, task);
    container_close(&info.c);
    return status;
}

static const struct option_rule rules[] = {
    FLAG_RULE("table", 0, &options.is_table),
    {"columns", 0, OPTION_TEXT, .value = &options.columns, .count = 2, INFO_TABLE_COLUMNS},
    {"sort", 0, OPTION_TEXT, .value = &options.sort, INFO_TABLE_COLUMNS},
    FLAG_RULE("csv", 0, &options.csv),
    FLAG_RULE("tsv", 0, &options.tsv),
    BYTES_RULE,
    FILES_RULES(files),
    {NULL},
};

static int run_info_table(struct files_command *command, int count, char **paths)
{
    if (files.json || (options.csv && options.tsv))
        return usage_error(&cmd_info, "choose one of --json, --csv, --tsv, --table");
    command->separator = NULL;
    command->prints_table = true;
    command->result_bytes = sizeof(struct info_table_lines);
    command->conclude = print_info_table;
    int status = info_table_init(&table, &cmd_info, options.columns, options.sort);
    if (!status)
        status = files_command(command, &files, count, paths);
    info_table_release(&table);
    return worse_status(status, table_status);
}

static int run_info(int count, char **paths)
{
    struct files_command command = {
        .command = &cmd_info,
        .separator = "\n\n",
        .is_io_bound = true,
        .skips_others = true,
        .reads_formats = true,
        .examine = info_file,
    };
    options.is_table =
        options.is_table || options.columns || options.sort || options.csv || options.tsv;
    return options.is_table ? run_info_table(&command, count, paths)
                            : files_command(&command, &files, count, paths);
}

const struct command cmd_info = {
    "info", "show lattice, checksums, ensemble", help, run_info, rules, ANY_OPERANDS, NULL};
