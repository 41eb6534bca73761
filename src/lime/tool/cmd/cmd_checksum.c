/* cmd_checksum.c - lime checksum: compute, compare and add SciDAC checksums */
#define _GNU_SOURCE
#include "checksum_files.h"
#include "container.h"
#include "edit.h"
#include "files.h"
#include "limeildg.h"
#include "sums_list.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum sum_action { SUM_UNTOUCHED, SUM_ADDED, SUM_REPLACED };

struct sum_item {
    struct limefile_field field;        /* with the sites that the options or the file give */
    char type[LIMEFILE_TYPE_BYTES + 1]; /* a copy, because the index owns the field's type */
    struct limefile_checksum sum;
    bool has_cksum; /* `cksum` is known; it is compared with nothing */
    uint32_t cksum;
    bool has_sum;                  /* `sum` is known; if false, a message was printed */
    enum limefile_verdict verdict; /* see docs/verdicts.md */
    enum sum_action action;
    bool is_other_format; /* not LIME: the header has another kind of checksum, or none */
};

struct checksum_options {
    bool add, replace, cksum;
    uint64_t site_bytes, sites; /* 0: as the file states */
    char **words;               /* the records to sum; all data if word_count is 0 */
    size_t word_count;
    struct file_task *task; /* the file */
};

static const char *const action_words[] = {NULL, "added", "replaced"};

static const char *explain_unverified(const struct sum_item *item)
{
    return item->is_other_format ? "not of the kind in the header; see 'lime check --data'"
                                 : "no checksum";
}

/* path: begins the line, or NULL. */
static void print_sum_text(const char *path, const struct sum_item *item)
{
    const struct limefile_field *f = &item->field;
    char type_name[TYPE_TEXT_MAX], more[96] = "";
    format_type(item->type, strlen(item->type), type_name);
    if (item->has_cksum)
        print_line(path, "%" PRIu32 " %" PRIu64 " %" PRIu64 " %s", item->cksum, f->record.bytes,
                   f->record.ordinal, type_name);
    if (item->has_cksum || !item->has_sum)
        return;
    if (item->action)
        snprintf(more, sizeof more, "  (%s)", action_words[item->action]);
    else if (item->verdict == LIMEFILE_BAD && f->has_checksum)
        snprintf(more, sizeof more, "  (record %" PRIu64 " says %08x %08x)",
                 f->checksum_ordinal, f->checksum.suma, f->checksum.sumb);
    else if (item->verdict == LIMEFILE_BAD)
        snprintf(more, sizeof more, "  (record %" PRIu64 " cannot be understood)",
                 f->checksum_ordinal);
    else if (item->verdict == LIMEFILE_UNVERIFIED)
        snprintf(more, sizeof more, "  (%s)", explain_unverified(item));
    print_line(path, "%08x %08x %-10s %" PRIu64 " %s%s", item->sum.suma, item->sum.sumb,
               limefile_verdict_word(item->verdict), f->record.ordinal, type_name, more);
}

static json_t *item_json(const struct sum_item *item)
{
    const struct limefile_field *f = &item->field;
    json_t *stored = NULL,
           *json = json_pack("{s:o, s:o, s:o}", "ordinal", jsonout_integer(f->record.ordinal),
                             "type", jsonout_string(item->type), "bytes",
                             jsonout_integer(f->record.bytes));
    if (item->has_cksum) {
        json_object_set_new(json, "cksum", jsonout_integer(item->cksum));
        return json;
    }
    if (f->has_checksum)
        stored = json_pack("{s:o, s:o, s:o}", "ordinal", jsonout_integer(f->checksum_ordinal),
                           "suma", jsonout_hex(f->checksum.suma), "sumb",
                           jsonout_hex(f->checksum.sumb));
    json_object_update_new(
        json, json_pack("{s:o, s:o, s:s, s:o*, s:o*, s:o*, s:s*}", "sites",
                        jsonout_integer(f->sites), "site_bytes", jsonout_integer(f->site_bytes),
                        "state", limefile_verdict_word(item->verdict), "suma",
                        item->has_sum ? jsonout_hex(item->sum.suma) : NULL, "sumb",
                        item->has_sum ? jsonout_hex(item->sum.sumb) : NULL, "stored", stored,
                        "action", action_words[item->action]));
    return json;
}

/* Explains the file's status, for JSON. Messages explain other verdicts. */
static void describe_sum(struct file_task *task, const struct sum_item *item)
{
    if (!*task->error && item->has_sum && item->verdict != LIMEFILE_GOOD)
        snprintf(task->error, sizeof task->error, "record %" PRIu64 ": %s",
                 item->field.record.ordinal,
                 item->verdict == LIMEFILE_BAD
                     ? "the data do not match the checksum in the file"
                     : explain_unverified(item));
}

/* Prints an item; i: its position in the output, from 0. */
static void print_item(const struct checksum_options *o, const struct sum_item *item, size_t i)
{
    describe_sum(o->task, item);
    if (o->task->json)
        jsonout_element(i, item_json(item));
    else
        print_sum_text(o->task->several ? o->task->path : NULL, item);
}

static void begin_items(const struct checksum_options *o)
{
    if (!o->task->json)
        return;
    file_json_begin(o->task, NULL);
    fputs(", \"records\": [", stdout);
}

static void end_items(const struct checksum_options *o)
{
    if (o->task->json)
        putchar(']');
}

static const char checksum_type[] = "scidac-checksum";

/* Readers assign a checksum record to the last data before it in the same message. Returns true
 * if they would assign the field a record at the container's end. */
static bool can_be_appended(const struct edit *edit, const struct limefile_fields *fields,
                            const struct limefile_field *field)
{
    struct limefile_record last;
    struct limefile_field last_field;
    limefile_fields_get(fields, fields->count - 1, &last_field);
    return limefile_index_get(edit->c.index, limefile_index_count(edit->c.index), &last) == 0 &&
           last.message == field->record.message &&
           last_field.record.ordinal == field->record.ordinal;
}

/* Adds a checksum record: appends it if can_be_appended(); otherwise inserts it after the data
 * and so rewrites the whole container. Returns an exit status. */
static int checksum_add(struct edit *edit, const struct limefile_fields *fields,
                        const struct limefile_field *field, const struct limefile_checksum *sum)
{
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(sum, xml);
    if (can_be_appended(edit, fields, field))
        return edit_append_small(edit, checksum_type, xml, n);
    return edit_insert(
        edit, &field->record,
        &(struct limefile_new_record){checksum_type, sizeof checksum_type - 1, xml, n});
}

/* Replaces the data of a checksum record; edit_replace_small() pads shorter data with blanks.
 */
static int checksum_replace(struct edit *edit, uint64_t ordinal,
                            const struct limefile_checksum *sum)
{
    struct limefile_record record;
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(sum, xml);
    int err = limefile_index_get(edit->c.index, ordinal, &record);
    if (err)
        return report_error(edit->c.path, "replace", err);
    return edit_replace_small(edit, &record, xml, n, ' ');
}

static const char help[] =
    "Usage: lime checksum [OPTION]... FILE [RECORD]...\n"
    "       lime checksum [OPTION]... FILE FILE...\n"
    "       lime checksum [OPTION]... -r DIR...\n"
    "       lime checksum [OPTION]... --files-from LIST [-0]\n"
    "       lime checksum --write LIST [--sum KIND] [-f] [OPTION]... FILE...\n"
    "       lime checksum --verify LIST [OPTION]... [DIR]\n"
    "Compute the SciDAC checksums of all ildg-binary-data and scidac-binary-data\n"
    "records of FILE, or of each RECORD. A line is\n"
    "\n"
    "  suma sumb STATE ORDINAL TYPE\n"
    "\n"
    "where STATE compares them with the checksum in the file: 'good', 'bad', or\n"
    "'unverified' if the file has none. For several files it begins with 'FILE:'.\n"
    "\n"
    "      --cksum            instead, compute the data's cksum(1), which is QCDml's\n"
    "                         crcCheckSum: a line is 'CKSUM BYTES ORDINAL TYPE'\n"
    "      --add              add a scidac-checksum record to data that have none\n"
    "      --replace          with --add: also replace a wrong checksum\n"
    "      --write LIST       instead, write sums of whole files, of any kind, to\n"
    "                         LIST, for --verify, sha256sum -c or md5sum -c; '-':\n"
    "                         to standard output\n"
    "      --sum KIND         with --write: sha256 (default), md5, adler32 or cksum\n"
    "  -f, --force            with --write: replace LIST\n"
    "      --verify LIST      compare files with their sums in LIST; with DIR,\n"
    "                         their copies below DIR\n"
    "      --site-bytes N     size of a site, instead of the one in the file\n"
    "      --lattice DIMS     lattice, instead of the one in the file: 32x32x32x64\n" FILES_HELP
    "\n"
    "The operands after the first one are files if all of them exist and none is a\n"
    "number; otherwise they are records.\n"
    "If the data are in the last message, --add appends the new record. Otherwise it\n"
    "writes a new file and then replaces FILE, so there must be space for both.\n"
    "\n"
    "Examples:\n"
    "  lime checksum conf.0042\n"
    "  lime checksum --add conf.0042\n"
    "  lime checksum --cksum conf.0042\n"
    "  lime checksum --site-bytes 576 conf.0042 links\n"
    "  lime checksum --write run7.sums -r run7\n"
    "  lime checksum --verify run7.sums /backup/run7\n"
    "\n"
    "Exit status: 0 all sums are computed, and good; 3 some data have no checksum; 1\n"
    "a sum is bad, or could not be computed or added; 2 wrong usage, or FILE cannot\n"
    "be read or is not a container. --cksum and --add compare nothing: 0. With\n"
    "--verify: 0 all files are good; 1 a sum differs; 2 a file is missing.\n";

/* If --site-bytes or --lattice is given, sets the field's site_bytes and sites by it, or both
 * to 0 if the length of the data is not a multiple of the given number. */
static void apply_site_options(const struct checksum_options *o, struct limefile_field *f)
{
    uint64_t bytes = f->record.bytes, by = o->site_bytes ? o->site_bytes : o->sites;
    if (!by)
        return;
    f->is_box = false;
    f->sites = f->site_bytes = 0;
    if (bytes == 0 || bytes % by)
        return;
    f->site_bytes = o->site_bytes ? by : bytes / by;
    f->sites = o->site_bytes ? bytes / by : by;
}

/* Gets the field in a record or, if the record is not a field, a field of unknown kind. Applies
 * the options to it. Returns false if the record does not exist. */
static bool get_field_to_sum(const struct checksum_options *o, const struct container *c,
                             const struct limefile_fields *fields, uint64_t ordinal,
                             struct limefile_field *out)
{
    if (!limefile_fields_find(fields, ordinal, out)) {
        *out = (struct limefile_field){.kind = LIMEFILE_KIND_UNKNOWN};
        if (limefile_index_get(c->index, ordinal, &out->record) != 0)
            return false;
    }
    apply_site_options(o, out);
    return true;
}

/* The ordinals of the records to sum, all of which exist, and their total length. */
struct selected {
    uint64_t *ordinal;
    size_t count, capacity;
    uint64_t bytes;
};

static int add_selected(const struct checksum_options *o, const struct container *c,
                        const struct limefile_fields *fields, uint64_t ordinal,
                        struct selected *out)
{
    struct limefile_field field;
    int err = get_field_to_sum(o, c, fields, ordinal, &field) ? 0 : LIMEFILE_E_NO_RECORD;
    if (!err &&
        !limefile_reserve(&out->ordinal, &out->capacity, out->count + 1, sizeof ordinal))
        err = -ENOMEM;
    if (err)
        return report_error(c->path, "checksum", err);
    out->ordinal[out->count++] = ordinal;
    out->bytes += field.record.bytes;
    return TOOL_GOOD;
}

static int select_records(const struct checksum_options *o, const struct container *c,
                          const struct limefile_fields *fields, struct selected *out)
{
    struct limefile_record record;
    struct limefile_field field;
    int status = TOOL_GOOD;
    *out = (struct selected){.count = 0};
    for (size_t i = 0; !status && i < o->word_count; i++)
        status = select_record(c, o->words[i], false, &record)
                     ? add_selected(o, c, fields, record.ordinal, out)
                     : TOOL_BAD;
    for (size_t i = 0; !status && !o->word_count && i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        status = add_selected(o, c, fields, field.record.ordinal, out);
    }
    if (!status && limefile_index_size(c->index) == 0) {
        message(c->path, "the file is empty");
        status = TOOL_BAD;
    }
    if (!status && out->count == 0) {
        message(c->path, "no record is ildg-binary-data or scidac-binary-data; choose one%s",
                o->cksum ? "" : " and give the size of its sites (--site-bytes)");
        status = TOOL_BAD;
    }
    return status;
}

/* Returns an item for the field, with a copy of its type: the index owns the original. */
static struct sum_item new_item(const struct limefile_field *field)
{
    struct sum_item item = {.field = *field, .verdict = LIMEFILE_UNREADABLE};
    memcpy(item.type, field->record.type, field->record.type_len + 1u);
    return item;
}

/* Returns true if the field can be summed; otherwise prints why not. */
static bool check_summable(const struct checksum_options *o, const struct container *c,
                           const struct limefile_field *f)
{
    if (limefile_field_is_summable(f))
        return true;
    if (o->site_bytes || o->sites)
        message(c->path,
                "record %" PRIu64 ": its %" PRIu64 " bytes are not a multiple of %" PRIu64,
                f->record.ordinal, f->record.bytes, o->site_bytes ? o->site_bytes : o->sites);
    else if (f->expected && f->expected != f->record.bytes)
        message(c->path,
                "record %" PRIu64 ": %" PRIu64 " bytes, should be %" PRIu64
                "; use --site-bytes to sum it anyway",
                f->record.ordinal, f->record.bytes, f->expected);
    else if (f->site_bytes && f->record.bytes % f->site_bytes == 0)
        message(c->path,
                "record %" PRIu64 ": its part of the lattice is unknown; use --site-bytes to "
                "sum it as the first sites",
                f->record.ordinal);
    else if (f->site_bytes)
        message(c->path,
                "record %" PRIu64 ": its %" PRIu64 " bytes are not a multiple of %" PRIu64,
                f->record.ordinal, f->record.bytes, f->site_bytes);
    else
        message(c->path,
                "record %" PRIu64 ": the size of a site is unknown; give it with --site-bytes",
                f->record.ordinal);
    return false;
}

/* Data of an unexpected length can have several layouts. If one of them gives the checksum in
 * the file, sets the field to that layout and returns 1. Returns 0 if none does or the options
 * give the sites; or an error. */
static int sum_as_stored(const struct checksum_options *o, struct limefile_source *source,
                         struct limefile_field *f, struct limefile_checksum *sum,
                         struct progress *progress)
{
    struct limefile_field fit;
    if (!f->has_checksum || limefile_field_is_summable(f) || o->site_bytes || o->sites)
        return 0;
    int right =
        limefile_field_verify(source, f, o->task->threads, progress_count, progress, &fit, sum);
    if (right == 1)
        *f = fit;
    return right == LIMEFILE_E_STATE ? 0 : right;
}

/* Sums the field. Returns TOOL_GOOD; or, after a message, TOOL_BAD if the field cannot be
 * summed, or TOOL_UNUSABLE if it cannot be read. */
static int compute_sum(const struct checksum_options *o, const struct container *c,
                       struct limefile_field *f, struct limefile_checksum *sum,
                       struct progress *progress)
{
    struct container_data data;
    int err = container_open_data(c, &f->record, &data);
    int right = err ? err : sum_as_stored(o, data.source, f, sum, progress);
    bool summable = right || check_summable(o, c, f);
    if (right == 0 && summable)
        right =
            limefile_field_sum(data.source, f, o->task->threads, progress_count, progress, sum);
    container_close_data(&data);
    if (right < 0)
        message_record(c->path, f->record.ordinal, right);
    return right < 0 ? TOOL_UNUSABLE : summable ? TOOL_GOOD : TOOL_BAD;
}

/* Returns the verdict on a record for which compute_sum() returned `status`. */
static enum limefile_verdict decide_sum_verdict(const struct sum_item *item,
                                                const struct limefile_field *f, int status)
{
    if (status != TOOL_GOOD)
        return status == TOOL_UNUSABLE     ? LIMEFILE_UNREADABLE
               : limefile_field_why_bad(f) ? LIMEFILE_BAD
                                           : LIMEFILE_UNVERIFIED;
    if (!f->checksum_ordinal)
        return LIMEFILE_UNVERIFIED;
    return f->has_checksum && limefile_field_sum_matches(f, &item->sum) ? LIMEFILE_GOOD
                                                                        : LIMEFILE_BAD;
}

/* Sums the field. Sets item->sum, item->verdict and item->field, with the sites used. */
static int sum_record(const struct checksum_options *o, const struct container *c,
                      struct sum_item *item, struct limefile_field *f,
                      struct progress *progress)
{
    int status = compute_sum(o, c, f, &item->sum, progress);
    item->field = *f;
    item->has_sum = status == TOOL_GOOD;
    item->verdict = decide_sum_verdict(item, f, status);
    item->is_other_format = c->format != NULL;
    if (status != TOOL_GOOD)
        return status;
    return verdict_status(item->verdict);
}

/* Computes the cksum(1) of a record's bytes. Has the same parameters as sum_record(). */
static int cksum_record(const struct checksum_options *o, const struct container *c,
                        struct sum_item *item, struct limefile_field *f,
                        struct progress *progress)
{
    struct container_data data;
    int err = container_open_data(c, &f->record, &data);
    if (!err)
        err = limefile_record_cksum(data.source, &f->record, o->task->threads, progress_count,
                                    progress, &item->cksum);
    container_close_data(&data);
    if (err)
        message_record(c->path, f->record.ordinal, err);
    else
        item->has_cksum = true;
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

static int sum_selected(const struct checksum_options *o, const struct container *c,
                        const struct limefile_fields *fields, const struct selected *selected)
{
    struct progress *progress = o->task->progress;
    int worst = TOOL_GOOD;
    if (progress)
        progress->total = selected->bytes;
    begin_items(o);
    for (size_t i = 0; i < selected->count; i++) {
        struct limefile_field field;
        get_field_to_sum(o, c, fields, selected->ordinal[i], &field);
        struct sum_item item = new_item(&field);
        int status = (o->cksum ? cksum_record : sum_record)(o, c, &item, &field, progress);
        print_item(o, &item, i);
        worst = worse_status(worst, status);
    }
    end_items(o);
    return worst;
}

static int load_fields(struct container *c, struct limefile_fields *fields)
{
    int err = limefile_fields_build(c->source, c->index, fields);
    if (err)
        message_code(c->path, "checksum", err);
    return err ? TOOL_UNUSABLE : TOOL_GOOD;
}

static int print_sums(const struct checksum_options *o)
{
    struct container c;
    struct limefile_fields fields;
    struct selected selected;
    int status = container_open_or_mounted(&c, o->task->path);
    if (status != TOOL_GOOD)
        return status;
    status = container_report_fault(&c);
    if (load_fields(&c, &fields) == TOOL_GOOD) {
        int done = select_records(o, &c, &fields, &selected);
        if (done == TOOL_GOOD)
            done = sum_selected(o, &c, &fields, &selected);
        status = worse_status(done, status);
        free(selected.ordinal);
        limefile_fields_release(&fields);
    } else {
        status = TOOL_UNUSABLE;
    }
    container_close(&c);
    return status;
}

static int report_other_checksum(const struct container *c, const struct sum_item *item)
{
    message(c->path,
            "record %" PRIu64 ": record %" PRIu64
            " has another checksum, so the data may be damaged; --replace overwrites it",
            item->field.record.ordinal, item->field.checksum_ordinal);
    return TOOL_BAD;
}

/* Returns true, after a message, if the file states the sites and the options give others. */
static bool report_other_sites(const struct checksum_options *o, const struct edit *edit,
                               const struct limefile_field *stated)
{
    struct limefile_field changed = *stated;
    apply_site_options(o, &changed);
    if (!limefile_field_is_summable(stated) ||
        (changed.site_bytes == stated->site_bytes && changed.is_box == stated->is_box))
        return false;
    message(edit->c.path,
            "record %" PRIu64 ": the file states %" PRIu64
            " bytes per site; readers would reject a checksum of other sites",
            stated->record.ordinal, stated->site_bytes);
    return true;
}

/* Adds or, with --replace, replaces the checksum of a field, unless the stored one is right. */
static int store_checksum(const struct checksum_options *o, struct edit *edit,
                          const struct limefile_fields *fields, const struct limefile_field *f,
                          struct sum_item *item)
{
    if (item->verdict == LIMEFILE_GOOD)
        return TOOL_GOOD;
    if (f->checksum_ordinal && !o->replace)
        return report_other_checksum(&edit->c, item);
    int status = f->checksum_ordinal ? checksum_replace(edit, f->checksum_ordinal, &item->sum)
                                     : checksum_add(edit, fields, f, &item->sum);
    if (status == TOOL_GOOD) {
        item->action = f->checksum_ordinal ? SUM_REPLACED : SUM_ADDED;
        item->verdict = LIMEFILE_GOOD;
    }
    return status;
}

/* Returns true if the record is still at its place; otherwise prints a message. Between two
 * edits, the container is not locked, so another process may change it. */
static bool is_intact(const struct edit *edit, const struct limefile_record *record)
{
    struct limefile_record current;
    if (limefile_index_get(edit->c.index, record->ordinal, &current) == 0 &&
        current.data_offset == record->data_offset && current.bytes == record->bytes)
        return true;
    message(edit->c.path, "checksum: another process has changed the container");
    return false;
}

/* Computes and stores the checksum of a field. Returns an exit status, after a message if it is
 * not TOOL_GOOD. */
static int add_field_checksum(const struct checksum_options *o, struct edit *edit,
                              struct sum_item *item, struct progress *progress)
{
    struct limefile_fields fields;
    struct limefile_field f;
    uint64_t ordinal = item->field.record.ordinal;
    if (!is_intact(edit, &item->field.record) || load_fields(&edit->c, &fields) != TOOL_GOOD)
        return TOOL_BAD;
    int status = TOOL_BAD;
    if (!limefile_fields_find(&fields, ordinal, &f)) {
        message(
            edit->c.path,
            "record %" PRIu64
            ": not ildg-binary-data or scidac-binary-data; readers would not find its checksum",
            ordinal);
    } else if (!report_other_sites(o, edit, &f)) {
        apply_site_options(o, &f);
        sum_record(o, &edit->c, item, &f, progress);
        progress_hide();
        if (item->has_sum)
            status = store_checksum(o, edit, &fields, &f, item);
    }
    limefile_fields_release(&fields);
    return status;
}

static int add_to_file(const struct checksum_options *o, struct sum_item *item)
{
    struct edit edit;
    int status = edit_open(&edit, o->task->path);
    if (status != TOOL_GOOD)
        return status;
    status = add_field_checksum(o, &edit, item, o->task->progress);
    edit_close(&edit);
    return status;
}

/* The records that get a checksum. The list stays valid when an edit closes the container. */
struct sum_items {
    struct sum_item *item;
    size_t count;
    uint64_t bytes;
};

static int compare_items(const void *a, const void *b)
{
    uint64_t x = ((const struct sum_item *)a)->field.record.ordinal,
             y = ((const struct sum_item *)b)->field.record.ordinal;
    return (x > y) - (x < y);
}

/* Begins with the last record, because an insertion changes the ordinals of later records. */
static int add_checksums(const struct checksum_options *o, struct sum_items *items)
{
    int worst = TOOL_GOOD;
    qsort(items->item, items->count, sizeof *items->item, compare_items);
    if (o->task->progress)
        o->task->progress->total = items->bytes;
    for (size_t i = items->count; i-- > 0;) {
        int status = add_to_file(o, &items->item[i]);
        worst = worse_status(status, worst);
    }
    begin_items(o);
    for (size_t i = 0; i < items->count; i++)
        print_item(o, &items->item[i], i);
    end_items(o);
    return worst;
}

static int fill_items(const struct checksum_options *o, const struct container *c,
                      const struct limefile_fields *fields, struct sum_items *items)
{
    struct selected selected;
    struct limefile_field field;
    int status = select_records(o, c, fields, &selected);
    items->item = status ? NULL : calloc(selected.count, sizeof *items->item);
    if (!status && !items->item)
        status = report_error(c->path, "checksum", -ENOMEM);
    for (; !status && items->count < selected.count; items->count++) {
        get_field_to_sum(o, c, fields, selected.ordinal[items->count], &field);
        items->item[items->count] = new_item(&field);
    }
    items->bytes = selected.bytes;
    free(selected.ordinal);
    return status;
}

static int select_from_file(const struct checksum_options *o, struct sum_items *items)
{
    struct container c;
    struct limefile_fields fields;
    int status = container_open(&c, o->task->path);
    if (status != TOOL_GOOD)
        return status;
    status = load_fields(&c, &fields);
    if (status == TOOL_GOOD) {
        status = fill_items(o, &c, &fields, items);
        if (status != TOOL_GOOD)
            container_report_fault(&c); /* the data may be after the fault */
        limefile_fields_release(&fields);
    }
    container_close(&c);
    return status;
}

static int run_checksum_add(const struct checksum_options *o)
{
    struct sum_items items = {.count = 0};
    int status = select_from_file(o, &items);
    if (status == TOOL_GOOD)
        status = add_checksums(o, &items);
    free(items.item);
    return status;
}

/* Parses "32x32x32x64" and sets *sites. Returns false if the text is not valid. */
static bool parse_lattice(const char *text, uint64_t *sites)
{
    *sites = 1;
    for (;;) {
        size_t n = strcspn(text, "x");
        uint64_t extent;
        if (!limefile_parse_number(text, n, &extent) || extent == 0 ||
            __builtin_mul_overflow(*sites, extent, sites))
            return false;
        if (!text[n])
            return true;
        text += n + 1;
    }
}

static struct checksum_options options;
static struct files_options files;

/* Options for the sums of whole files. */
static struct {
    const char *write, *verify; /* names of lists */
    int kind;                   /* subscript in sum_words, or -1 */
    bool force;
} lists = {.kind = -1};

static int parse_lattice_option(const void *command, char *text)
{
    return parse_lattice(text, &options.sites)
               ? TOOL_GOOD
               : value_error(command, "--lattice", NULL, text, "extents, as in 32x32x32x64");
}

static const struct option_rule rules[] = {
    FLAG_RULE("add", 0, &options.add),
    FLAG_RULE("replace", 0, &options.replace),
    FLAG_RULE("cksum", 0, &options.cksum),
    {"site-bytes", 0, OPTION_NUMBER, &options.site_bytes, 1, 0x1p60,
     .expected = "bytes, from 1"},
    {"lattice", 0, OPTION_CALL_TEXT, .handle = parse_lattice_option},
    TEXT_RULE("write", 0, &lists.write),
    TEXT_RULE("verify", 0, &lists.verify),
    {"sum", 0, OPTION_WORD, &lists.kind, .words = sum_words},
    FLAG_RULE("force", 'f', &lists.force),
    FILES_RULES(files),
    {NULL},
};

static int run_checksum_lists(int count, char **words)
{
    const struct checksum_options *o = &options;
    if (o->add || o->replace || o->cksum || o->site_bytes || o->sites)
        return usage_error(&cmd_checksum,
                           "--write and --verify compute sums of whole files: no --add, "
                           "--replace, --cksum, --site-bytes or --lattice");
    if (lists.write && lists.verify)
        return usage_error(&cmd_checksum, "--write and --verify cannot be combined");
    if (!lists.write && (lists.force || lists.kind >= 0))
        return usage_error(&cmd_checksum, "-f and --sum require --write");
    if (lists.write && files.json && strcmp(lists.write, "-") == 0)
        return usage_error(&cmd_checksum, "--json requires a file for --write");
    if (lists.write)
        return checksum_files_write(&cmd_checksum, &files, lists.write,
                                    lists.kind < 0 ? STAGE_SHA256 : 1u << lists.kind,
                                    lists.force, count, words);
    if (files.paths.recursive || files.paths.list || count > 1)
        return usage_error(&cmd_checksum, "--verify LIST takes one directory, and no -r or "
                                          "--files-from: LIST names the files");
    return checksum_files_verify(&cmd_checksum, &files, lists.verify, count ? words[0] : NULL);
}

static int checksum_file(struct file_task *task)
{
    struct checksum_options one = options;
    one.task = task;
    return one.add ? run_checksum_add(&one) : print_sums(&one);
}

/* Returns true if the operands after the first one name files, not records. */
static bool name_files(int count, char **words)
{
    bool exist = true;
    for (int i = 1; exist && i < count; i++)
        exist = words[i][strspn(words[i], "0123456789.")] && access(words[i], F_OK) == 0;
    return exist;
}

static int run_checksum(int count, char **words)
{
    struct checksum_options *o = &options;
    const struct files_command command = {.command = &cmd_checksum,
                                          .skips_others = true,
                                          .reads_formats = true,
                                          .examine = checksum_file};
    if (lists.write || lists.verify || lists.force || lists.kind >= 0)
        return run_checksum_lists(count, words);
    if (o->replace && !o->add)
        return usage_error(&cmd_checksum, "--replace requires --add");
    if (o->cksum && (o->add || o->site_bytes || o->sites))
        return usage_error(&cmd_checksum,
                           "--cksum cannot be combined with --add, --site-bytes or --lattice");
    if (o->site_bytes && o->sites)
        return usage_error(&cmd_checksum, "--site-bytes and --lattice cannot be combined");
    if (!files.paths.recursive && !files.paths.list && !name_files(count, words)) {
        o->words = words + 1;
        o->word_count = (size_t)count - 1;
        count = 1;
    }
    return files_command(&command, &files, count, words);
}

const struct command cmd_checksum = {
    "checksum", "compute, compare and add checksums", help, run_checksum, rules, ANY_OPERANDS,
    NULL};
