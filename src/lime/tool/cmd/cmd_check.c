/*
 * cmd_check.c - lime check: report deviations of containers from the format, and bad checksums
 *
 * lime check first scans the structure and collects the findings. It prints them only after it
 * has parsed the metadata, so that all findings appear in file order. It verifies the data
 * last, because reading them can take minutes.
 */
#define _GNU_SOURCE
#include "check.h"
#include "checkpoint.h"
#include "container.h"
#include "field_check.h"
#include "files.h"
#include "jsonout.h"
#include "limedetect.h"
#include "text.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNTS_MAX = 128 };

/* ---- findings ---- */

static bool is_json(const struct check *check)
{
    return check->task && check->task->json;
}

/* With --json, prints the separator before a finding. Call it before the finding is counted. */
static void print_finding_separator(const struct check *check)
{
    if (is_json(check) && check->warnings + check->deviations + check->faults)
        fputs(", ", stdout);
}

/* Counts and prints a finding: a warning, fault or deviation. */
static void check_report(struct check *check, const struct limefile_finding *finding)
{
    bool warning = limefile_is_harmless(finding->code) && !check->options->strict;
    print_finding_separator(check);
    if (!warning && !*check->first_text)
        limefile_finding_text(finding, check->first_text, sizeof check->first_text);
    if (warning)
        check->warnings++;
    else if (limefile_is_fault(finding->code))
        check->faults++;
    else
        check->deviations++;
    if (limefile_is_read_error(finding->code))
        check->read_failed = true;
    if (is_json(check))
        jsonout_print(stdout, jsonout_finding(finding));
    else if (check->task)
        message_finding(check->path, finding, warning);
}

/* ---- the summary line ---- */

/* Formats "; checksums: 2 right, 1 wrong", or "; checksums: " and `none` if all are 0. */
static void format_counts(const char *what, const char *const names[3],
                          const struct check_counts *counts, const char *none,
                          char buf[COUNTS_MAX])
{
    const uint64_t values[] = {counts->good, counts->wrong, counts->unverified};
    int used = snprintf(buf, COUNTS_MAX, "; %s: ", what);
    bool any = false;
    for (size_t i = 0; i < 3; i++)
        if (values[i]) {
            used += snprintf(buf + used, COUNTS_MAX - (size_t)used, "%s%" PRIu64 " %s",
                             any ? ", " : "", values[i], names[i]);
            any = true;
        }
    if (!any)
        snprintf(buf + used, COUNTS_MAX - (size_t)used, "%s", none);
}

static void format_sum_counts(const struct check *c, char buf[COUNTS_MAX])
{
    static const char *const names[] = {"right", "wrong", "unverified"};
    if (c->options->data)
        format_counts("checksums", names, &c->sums, "no data to verify", buf);
    else if (c->has_data)
        snprintf(buf, COUNTS_MAX, "; %s",
                 c->options->physics ? "checksums not compared" : "data not read");
}

static void format_physics_counts(const struct check *c, char buf[COUNTS_MAX])
{
    static const char *const names[] = {"good", "bad", "unverified"};
    if (c->options->physics)
        format_counts("configurations", names, &c->physics, "none", buf);
}

static void format_deviations(const struct check *c, char buf[COUNTS_MAX])
{
    uint64_t bad = c->deviations + c->faults;
    const char *end = !c->end_code ? ""
                      : bad == 1   ? ", a fault that ends the container"
                                   : ", the last one a fault that ends the container";
    if (bad)
        snprintf(buf, COUNTS_MAX, ": %" PRIu64 " deviation%s%s", bad, plural(bad), end);
}

static void print_check_summary(const struct check *c)
{
    char found[COUNTS_MAX] = "", sums[COUNTS_MAX] = "", physics[COUNTS_MAX] = "",
         warnings[48] = "", size[LIMEFILE_SIZE_CHARS];
    const char *verdict = limefile_verdict_word(c->verdict);
    limefile_format_bytes(c->size, size);
    format_deviations(c, found);
    format_sum_counts(c, sums);
    format_physics_counts(c, physics);
    if (c->warnings)
        snprintf(warnings, sizeof warnings, "; %" PRIu64 " warning%s", c->warnings,
                 plural(c->warnings));
    if (c->format)
        print_line(c->path, "%s%s: %s file, %s%s%s%s", verdict, found, c->format, size, sums,
                   physics, warnings);
    else
        print_line(c->path, "%s%s: %" PRIu64 " record%s in %" PRIu32 " message%s, %s%s%s%s",
                   verdict, found, c->records, plural(c->records), c->messages,
                   plural(c->messages), size, sums, physics, warnings);
}

/* ---- JSON ---- */

/* Prints the members that follow the findings. */
static void end_check_json(const struct check *c, const struct data_check *data)
{
    json_t *values = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:s*}", "deviations", jsonout_integer(c->deviations),
        "faults", jsonout_integer(c->faults), "warnings", jsonout_integer(c->warnings),
        "records", jsonout_integer(c->records), "messages", jsonout_integer(c->messages),
        "size", jsonout_integer(c->size), "format", c->format);
    jsonout_members("], ", values, "");
    if (c->options->data) {
        jsonout_list_print("checksums", data->sum_list);
        jsonout_list_print("checkpoints", data->checkpoint_list);
    }
    if (c->options->physics)
        jsonout_list_print("physics", data->physics_list);
    if (c->qcdml && c->verdict != LIMEFILE_UNREADABLE)
        qcdml_check(c->qcdml);
    if (c->qcdml)
        jsonout_members(", ", json_pack("{s:o}", "qcdml", qcdml_check_json(c->qcdml)), "");
}

/* The state of one file while it is open. */
struct check_state {
    struct check *check;
    struct container c;
    struct limefile_fields fields;

    /* Findings about the structure, collected before the metadata are parsed. */
    struct limefile_finding *found;
    size_t found_count, found_capacity;
    bool out_of_memory;

    /* Findings about metadata that are not reported yet. */
    size_t fields_reported; /* number of findings about fields reported so far */
    size_t next_field;      /* --strict: the next field to search for missing records */
    struct limefile_finding missing[2]; /* missing records of one field */
    unsigned missing_count;

    /* Findings about checkpoints, computed one at a time. */
    struct limecheckpoint_findings checkpoints;
    struct limefile_finding checkpoint_finding; /* the next one; its text is in `checkpoints` */
    bool has_checkpoint_finding;                /* checkpoint_finding is set */
    int checkpoint_status; /* 1: there may be more; 0: no more; < 0: an error */

    struct limefile_finding beginning; /* for a file that does not begin with a header */

    struct data_check data;
};

/* ---- order of findings ---- */

static int compare_findings(const struct limefile_finding *x, const struct limefile_finding *y)
{
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->code > y->code) - (x->code < y->code);
}

/* Returns the next finding about a record that a field lacks; NULL: no more, or no --strict. */
static const struct limefile_finding *next_missing(struct check_state *state)
{
    struct limefile_finding *m = state->missing;
    while (state->check->options->strict && state->missing_count == 0 &&
           state->next_field < state->fields.count)
        state->missing_count =
            limefile_fields_find_missing(&state->fields, state->next_field++, m);
    if (state->missing_count == 2 && compare_findings(&m[0], &m[1]) > 0) {
        struct limefile_finding first = m[1];
        m[1] = m[0];
        m[0] = first;
    }
    return state->missing_count ? m : NULL;
}

/* Returns the next finding about a checkpoint, or NULL. */
static const struct limefile_finding *next_checkpoint_finding(struct check_state *state)
{
    if (!state->has_checkpoint_finding && state->checkpoint_status == 1) {
        state->checkpoint_status =
            limecheckpoint_findings_next(&state->checkpoints, &state->checkpoint_finding);
        state->has_checkpoint_finding = state->checkpoint_status == 1;
    }
    return state->has_checkpoint_finding ? &state->checkpoint_finding : NULL;
}

/* Finds the pending finding about metadata that has the lowest offset. If that is less than
 * `before`, removes the finding and stores it in *out; else returns false. */
static bool pop_finding(struct check_state *state, uint64_t before,
                        struct limefile_finding *out)
{
    const struct limefile_finding *first = next_missing(state),
                                  *checkpoint = next_checkpoint_finding(state);
    struct limefile_finding field;
    bool has_field = limefile_fields_finding(&state->fields, state->fields_reported, &field);
    if (has_field && !(first && compare_findings(first, &field) < 0))
        first = &field;
    if (checkpoint && !(first && compare_findings(first, checkpoint) <= 0))
        first = checkpoint;
    if (!first || first->offset >= before)
        return false;
    *out = *first;
    if (first == checkpoint) {
        state->has_checkpoint_finding = false;
    } else if (first == &field) {
        state->fields_reported++;
    } else {
        state->missing[0] = state->missing[1];
        state->missing_count--;
    }
    return true;
}

/* Reports the pending findings about metadata whose offsets are less than `before`. */
static void report_metadata_findings(struct check_state *state, uint64_t before)
{
    struct limefile_finding finding;
    while (pop_finding(state, before, &finding))
        check_report(state->check, &finding);
}

/* ---- structure and metadata ---- */

static void collect_finding(void *context, const struct limefile_finding *finding)
{
    struct check_state *state = context;
    state->out_of_memory =
        state->out_of_memory || !limefile_reserve(&state->found, &state->found_capacity,
                                                  state->found_count + 1, sizeof *state->found);
    if (state->out_of_memory)
        return;
    state->found[state->found_count++] = *finding;
}

/* Shows the progress of the scan. With --data or --physics, the bar shows reads of data. */
static void show_scan(void *context, uint64_t done, uint64_t size)
{
    struct check_state *state = context;
    const struct check *check = state->check;
    (void)size;
    if (!check->options->data && !check->options->physics)
        progress_to(check->progress, done);
}

static int parse_container(struct check_state *state)
{
    struct limefile_source *source = state->c.source;
    int err = limefile_index_scan(source, collect_finding, show_scan, state, &state->c.index);
    if (!err && state->out_of_memory)
        err = -ENOMEM;
    return err ? err : limefile_fields_build(source, state->c.index, &state->fields);
}

/* Reports all findings in file order, and sets the numbers that the summary line shows. */
static int report_all_findings(struct check_state *state)
{
    struct check *check = state->check;
    const struct limefile_finding *fault = limefile_index_fault(state->c.index);
    limecheckpoint_findings_begin(&state->checkpoints, state->c.source, state->c.index);
    state->checkpoint_status = 1;
    check->size = limefile_index_size(state->c.index);
    check->records = limefile_index_count(state->c.index);
    check->messages = limefile_index_messages(state->c.index);
    check->end_code = fault ? fault->code : 0;
    check->has_data = state->fields.count > 0 || has_checkpoint(state->c.index);
    for (size_t i = 0; i < state->found_count; i++) {
        report_metadata_findings(state, state->found[i].offset);
        check_report(check, &state->found[i]);
    }
    report_metadata_findings(state, UINT64_MAX);
    if (state->checkpoint_status < 0)
        return state->checkpoint_status;
    if (check->size == 0)
        check_report(check, &(struct limefile_finding){.code = LIMEFILE_D_EMPTY});
    return 0;
}

/* ---- data ---- */

static bool count_bytes(void *context, uint64_t more)
{
    struct check *check = context;
    check->bytes_read += more;
    progress_add(check->progress, more);
    return true;
}

static void report_data_finding(void *context, const struct limefile_finding *finding)
{
    check_report(context, finding);
}

static void init_data_check(struct check_state *state)
{
    struct check *check = state->check;
    const struct check_options *o = check->options;
    state->data = (struct data_check){
        .path = check->path,
        .c = &state->c,
        .fields = &state->fields,
        .threads = o->threads,
        .quiet = !check->task || check->task->json,
        .strict = o->strict,
        .with_data = o->data,
        .with_physics = o->physics,
        .sums = &check->sums,
        .physics = &check->physics,
        .progress = count_bytes,
        .report = report_data_finding,
        .context = check,
    };
}

static int verify_container_data(struct check_state *state)
{
    struct data_check *data = &state->data;
    int err = 0;
    if (data->with_data)
        sums_check(data);
    else if (data->with_physics)
        sums_check_headers(data);
    if (data->with_data)
        err = check_checkpoint_data(data);
    return !err && data->with_physics ? physics_check(data) : err;
}

/* Checks a file in another format as one configuration. */
static int verify_gauge_file(struct check_state *state)
{
    int err = state->c.source->ops->size(state->c.source, &state->check->size);
    state->check->has_data = true;
    return err ? err : gauge_check(&state->data);
}

/* ---- kind of file ---- */

/* Returns 1 for a container, < 0 if the file cannot be read, and 0 otherwise. With 0, sets one
 * of these: check->format (a file in another format), state->beginning (its beginning is
 * damaged), check->skipped or check->error (why the file is not examined). */
static int classify_file(struct check_state *state)
{
    static const char container[] = "not a LIME container";
    struct check *check = state->check;
    if (state->c.mounted)
        return 1;
    check->format = state->c.format;
    if (check->format)
        return 0;
    int kind = limefile_detect_container(state->c.source, &state->beginning);
    if (kind < 0)
        return state->beginning.code ? 0 : kind;
    if (kind == 0 && check->is_optional)
        check->skipped = container;
    else if (kind == 0)
        check->error = container;
    if (check->error)
        message(check->path, "%s", TEXT_NOT_CONTAINER);
    return kind;
}

static int check_container(struct check_state *state)
{
    int err = parse_container(state);
    if (!err)
        err = report_all_findings(state);
    return err ? err : verify_container_data(state);
}

/* Examines a file for which classify_file() returned 0. */
static int check_other_file(struct check_state *state)
{
    struct check *check = state->check;
    if (check->format)
        return verify_gauge_file(state);
    check_report(check, &state->beginning);
    return state->c.source->ops->size(state->c.source, &check->size);
}

static enum limefile_verdict decide_verdict(const struct check *check)
{
    if (check->error || check->read_failed)
        return LIMEFILE_UNREADABLE;
    if (check->deviations + check->faults + check->sums.wrong + check->physics.wrong)
        return LIMEFILE_BAD;
    if (check->sums.unverified + check->physics.unverified == 0)
        return LIMEFILE_GOOD;
    return check->options->strict ? LIMEFILE_BAD : LIMEFILE_UNVERIFIED;
}

static int create_json_lists(struct check_state *state)
{
    const struct check_options *o = state->check->options;
    int err = o->data ? jsonout_list_create(&state->data.sum_list) : 0;
    if (!err && o->data)
        err = jsonout_list_create(&state->data.checkpoint_list);
    return !err && o->physics ? jsonout_list_create(&state->data.physics_list) : err;
}

/* Examines the file, a container or not, and sets and prints its verdict. */
static void check_opened_file(struct check_state *state, bool is_container)
{
    struct check *check = state->check;
    bool json = is_json(check);
    if (json) {
        file_json_begin(check->task, NULL);
        fputs(", \"findings\": [", stdout);
    }
    init_data_check(state);
    int err = json ? create_json_lists(state) : 0;
    if (!err)
        err = is_container ? check_container(state) : check_other_file(state);
    if (err) {
        message_code(check->path, "check", err);
        check->error = limefile_strerror(err);
    }
    check->verdict = decide_verdict(check);
    if (json)
        end_check_json(check, &state->data);
    else if (!err && check->task)
        print_check_summary(check);
}

static void close_checked_file(struct check_state *state)
{
    container_close(&state->c);
    jsonout_list_release(state->data.sum_list);
    jsonout_list_release(state->data.checkpoint_list);
    jsonout_list_release(state->data.physics_list);
    limefile_fields_release(&state->fields);
    free(state->found);
}

void check_file(struct check *check)
{
    struct check_state state = {.check = check};
    int kind, err = container_open_source(&state.c, check->path);
    kind = err ? err : classify_file(&state);
    if (!err && kind < 0)
        message_code(check->path, "read", kind);
    if (kind < 0)
        check->error = limefile_strerror(kind);
    if (check->error || check->skipped)
        check->verdict = check->error ? LIMEFILE_UNREADABLE : LIMEFILE_SKIPPED;
    else
        check_opened_file(&state, kind == 1);
    close_checked_file(&state);
}

static const char help[] =
    "Usage: lime check [-q] [--json] [--data] [--physics] [--strict] [-j N] FILE...\n"
    "       lime check [OPTION]... [--list-skipped] [--all] -r DIR...\n"
    "       lime check [OPTION]... --files-from LIST [-0]\n"
    "       lime check [OPTION]... --qcdml DOC.xml FILE\n"
    "Check LIME containers: their structure, their ILDG and SciDAC metadata, and the\n"
    "indexes of checkpoints of particles. Each deviation is printed with its offset,\n"
    "then a line with the verdict on the file: good, unverified, bad.\n"
    "\n"
    "      --data             also read the data, and compare them with their\n"
    "                         SciDAC checksums; in a checkpoint, compare each cell\n"
    "                         with its checksum, each particle's position with its\n"
    "                         cell\n"
    "      --physics          also compute plaquette and link trace of each gauge\n"
    "                         configuration of ILDG or QIO, compare them with those\n"
    "                         in xlf-info, scidac-record-xml and qcdml, name the\n"
    "                         first link that is not a unitary matrix of\n"
    "                         determinant 1, and fields that cannot be checked\n"
    "      --strict           warnings and data that are unverified are bad\n"
    "      --qcdml DOC.xml    also compare FILE with its QCDml document: dataLFN,\n"
    "                         precision, and for each record field, crcCheckSum and\n"
    "                         avePlaquette; this reads the data\n"
    "      --all              with -r, a file that is not a container is bad\n"
    "      --bytes            print sizes in bytes, not as 145K\n" FILES_HELP "\n"
    "Without --data and --physics, lime check reads headers and metadata only.\n"
    "FILE may also be a NERSC, MILC or openQCD file: its header is examined, and\n"
    "with --data or --physics the data are compared with it.\n"
    "A file is unverified if some data have no checksum that can be compared. A file\n"
    "that is empty, or whose beginning is damaged or zero, is bad. 'lime repair'\n"
    "repairs most deviations of the structure.\n"
    "\n"
    "Examples:\n"
    "  lime check --data conf.0042 && solver conf.0042\n"
    "  lime check --data -r /data/runs\n"
    "  lime check --physics conf.0042\n"
    "  lime check --qcdml conf.0042.xml conf.0042\n"
    "  find /data -name 'conf.*' -print0 | lime check -0 --files-from -\n"
    "\n"
    "A crcCheckSum other than the data's cksum is only a warning (without --strict)\n"
    "if it is NERSC's checksum, or if the data match their SciDAC checksum.\n"
    "\n"
    "Exit status, the worst of all files: 0 good (or skipped); 3 unverified; 1 bad,\n"
    "or different from DOC.xml; 2 a file cannot be read or is not a container, or\n"
    "wrong usage.\n";

static struct check_options options;
static struct files_options files;
static const char *qcdml_document;
static bool others_are_bad;
static double began; /* when the command began, in seconds */

/* ---- all files ---- */

/* The results that the summary line shows. */
struct outcome {
    uint64_t warnings, size, bytes_read;
};

/* Compares the file with its QCDml document, if one was given. Returns an exit status. */
static int compare_document(struct check *check)
{
    if (!check->qcdml || check->verdict == LIMEFILE_UNREADABLE)
        return TOOL_GOOD;
    if (!check->task->json)
        qcdml_check(check->qcdml);
    return check->qcdml->status;
}

static void describe_error(struct file_task *task, const struct check *check, int status)
{
    const char *text = check->error ? "" : check->first_text;
    if (!*text && status == TOOL_UNVERIFIED)
        text = "some data have no checksum, or one that cannot be compared";
    else if (!*text && check->qcdml && status == TOOL_BAD)
        text = "differs from its QCDml document";
    snprintf(task->error, sizeof task->error, "%s", text);
}

static int check_task(struct file_task *task)
{
    struct check_options one = options;
    one.threads = task->threads;
    struct check check = {
        .path = task->path,
        .options = &one,
        .task = task,
        .progress = task->progress,
        .is_optional = task->is_optional,
    };
    struct qcdml_check qcdml = {
        .document = qcdml_document,
        .path = task->path,
        .threads = task->threads,
        .strict = options.strict,
        .silent = task->json,
        .found = json_array(),
    };
    if (task->progress && options.data && options.physics)
        task->progress->total *= 2; /* the data are read twice */
    check.qcdml = qcdml_document ? &qcdml : NULL;
    check_file(&check);
    if (check.skipped && others_are_bad) {
        message(task->path, "%s", check.skipped);
        check.verdict = LIMEFILE_BAD;
    } else {
        task->skipped = check.skipped;
    }
    int status = worse_status(compare_document(&check), verdict_status(check.verdict));
    describe_error(task, &check, status);
    json_decref(qcdml.found);
    *(struct outcome *)task->result =
        (struct outcome){check.warnings, check.size, check.bytes_read};
    return status;
}

static void format_totals(const struct outcome *total, char text[SUMMARY_MAX])
{
    char rate[64] = "", warnings[48] = "", human[LIMEFILE_SIZE_CHARS];
    double seconds = seconds_now() - began;
    if (total->warnings)
        snprintf(warnings, sizeof warnings, "; %" PRIu64 " warning%s", total->warnings,
                 plural(total->warnings));
    if ((options.data || options.physics) && seconds > 0 && isatty(STDOUT_FILENO))
        snprintf(rate, sizeof rate, ", %s/s",
                 limefile_format_bytes((uint64_t)((double)total->bytes_read / seconds), human));
    snprintf(text, SUMMARY_MAX, "%s; %s%s", warnings, limefile_format_bytes(total->size, human),
             rate);
}

static void sum_outcomes(const struct files_results *results, json_t *summary,
                         char text[SUMMARY_MAX])
{
    struct outcome total = {0};
    const struct outcome *one = (const struct outcome *)(const void *)results->result;
    for (size_t i = 0; i < results->list->count; i++) {
        total.warnings += one[i].warnings;
        total.size += one[i].size;
        total.bytes_read += one[i].bytes_read;
    }
    if (!summary) {
        format_totals(&total, text);
        return;
    }
    json_object_set_new(summary, "warnings", jsonout_integer(total.warnings));
    json_object_set_new(summary, "bytes", jsonout_integer(total.size));
    json_object_set_new(summary, "summed", jsonout_integer(total.bytes_read));
}

static const struct option_rule rules[] = {
    FLAG_RULE("data", 0, &options.data),
    FLAG_RULE("physics", 0, &options.physics),
    FLAG_RULE("strict", 0, &options.strict),
    TEXT_RULE("qcdml", 0, &qcdml_document),
    FLAG_RULE("all", 0, &others_are_bad),
    BYTES_RULE,
    FILES_RULES(files),
    {NULL},
};

static int run_check(int count, char **paths)
{
    const struct files_command command = {
        .command = &cmd_check,
        .is_io_bound = !options.data && !options.physics,
        .result_bytes = sizeof(struct outcome),
        .examine = check_task,
        .conclude = sum_outcomes,
    };
    if (qcdml_document && (files.paths.recursive || files.paths.list || count != 1))
        return usage_error(&cmd_check, "--qcdml requires exactly one FILE");
    began = seconds_now();
    return files_command(&command, &files, count, paths);
}

const struct command cmd_check = {
    "check", "report deviations; verify checksums", help, run_check, rules, ANY_OPERANDS, NULL};
