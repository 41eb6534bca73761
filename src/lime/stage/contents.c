/* contents.c - examine a file before it is copied */
#define _GNU_SOURCE
#include "contents.h"

#include "limedetect.h"
#include "limecells.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define UNVERIFIED "record %" PRIu64 ": unverified: %s"

/* ---- messages and results ---- */

void stage_messages_add(struct stage_messages *messages, const char *format, ...)
{
    va_list args;
    if (messages->count == STAGE_MESSAGES_MAX) {
        messages->more++;
        return;
    }
    va_start(args, format);
    if (vasprintf(&messages->line[messages->count], format, args) >= 0)
        messages->count++;
    else
        messages->more++;
    va_end(args);
}

void stage_messages_release(struct stage_messages *messages)
{
    for (unsigned i = 0; i < messages->count; i++)
        free(messages->line[i]);
    *messages = (struct stage_messages){0};
}

uint64_t stage_unverified_count(const struct stage_result *result)
{
    return result->unverified.count + result->unverified.more;
}

int stage_fail(struct stage_result *result, int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(result->reason, sizeof result->reason, format, args);
    va_end(args);
    return err < 0 ? err : -EIO;
}

void stage_set_verdict(struct stage_result *result, enum limefile_verdict verdict)
{
    result->has_verdict = true;
    result->verdict = verdict;
}

void stage_set_copy_verdict(struct stage_result *r)
{
    r->reason[0] = '\0'; /* an earlier attempt may have failed */
    r->has_verdict = false;
    if (!r->container) {
        stage_set_verdict(r, LIMEFILE_SKIPPED);
        snprintf(r->reason, sizeof r->reason, "not a LIME container");
    } else if (stage_unverified_count(r)) {
        stage_set_verdict(r, LIMEFILE_UNVERIFIED);
    } else if (r->read) {
        stage_set_verdict(r, LIMEFILE_GOOD);
    }
}

/* ---- findings ---- */

struct examination {
    const struct stage_options *options;
    struct stage_result *result;
    int err; /* the first finding that is a failure */
};

static int fail_with_verdict(const struct examination *exam, int code, const char *text)
{
    stage_set_verdict(exam->result,
                      limefile_is_read_error(code) ? LIMEFILE_UNREADABLE : LIMEFILE_BAD);
    return stage_fail(exam->result, code, "%s", text);
}

static int fail_unreadable(const struct examination *exam, int err)
{
    stage_set_verdict(exam->result, LIMEFILE_UNREADABLE);
    return stage_fail(exam->result, err, "read: %s", limefile_strerror(err));
}

static void report_finding(void *context, const struct limefile_finding *finding)
{
    struct examination *exam = context;
    char text[256];
    if (exam->err)
        return;
    limefile_finding_text(finding, text, sizeof text);
    if (exam->options->strict || !limefile_is_harmless(finding->code))
        exam->err = fail_with_verdict(exam, finding->code, text);
    else
        stage_messages_add(&exam->result->warnings, "%s", text);
}

/* Reports each deviation of the structure. The index has only their number. */
static int report_deviations(struct limefile_source *source, struct examination *exam)
{
    struct limefile_scan *scan;
    struct limefile_record record;
    int err = limefile_scan_new(source, report_finding, exam, &scan);
    if (err)
        return fail_unreadable(exam, err);
    while (!exam->err && limefile_scan_next(scan, &record) > 0)
        ;
    limefile_scan_free(scan);
    return exam->err;
}

static void add_unverified_text(struct examination *exam, const char *text)
{
    stage_messages_add(&exam->result->unverified, "%s", text);
    if (exam->options->strict && !exam->err)
        exam->err = fail_with_verdict(exam, LIMEFILE_D_CHECKSUM_MISSING, text);
}

static void add_unverified(struct examination *exam, uint64_t ordinal, const char *why)
{
    char text[256];
    snprintf(text, sizeof text, UNVERIFIED, ordinal, why);
    add_unverified_text(exam, text);
}

/* For field i, which has no checksum: reports a missing ildg-format as a finding, or adds the
 * field to the unverified data. */
static void check_required_records(const struct stage_contents *contents,
                                   struct examination *exam, size_t i, uint64_t ordinal)
{
    struct limefile_finding findings[2];
    unsigned count = limefile_fields_find_missing(&contents->fields, i, findings);
    if (count && findings[0].code == LIMEFILE_D_FORMAT_MISSING)
        report_finding(exam, &findings[0]);
    else if (count)
        add_unverified(exam, ordinal, limefile_strerror(findings[0].code));
}

static void report_unverified(const struct stage_contents *contents, struct examination *exam)
{
    for (size_t i = 0; i < contents->fields.count; i++) {
        struct limefile_field field;
        limefile_fields_get(&contents->fields, i, &field);
        const char *why = limefile_field_why_unverified(&field);
        if (!field.checksum_ordinal)
            check_required_records(contents, exam, i, field.record.ordinal);
        else if (why)
            add_unverified(exam, field.record.ordinal, why);
    }
}

/* Adds particle data to the unverified data: the sums in their index are not compared here. */
static void report_particles(const struct stage_contents *contents, struct examination *exam)
{
    struct limefile_record record;
    uint64_t count = limefile_index_count(contents->index);
    for (uint64_t ordinal = 1; ordinal <= count; ordinal++)
        if (limefile_index_get(contents->index, ordinal, &record) == 0 &&
            strcmp(record.type, LIMECELLS_DATA_TYPE) == 0)
            add_unverified(exam, ordinal, "particles; 'lime check --data' compares them");
}

static int examine_fields(struct stage_contents *contents, struct limefile_source *source,
                          struct examination *exam)
{
    struct limefile_finding finding;
    int err = limefile_fields_build(source, contents->index, &contents->fields);
    if (err)
        return fail_unreadable(exam, err);
    for (size_t i = 0; limefile_fields_finding(&contents->fields, i, &finding); i++)
        report_finding(exam, &finding);
    memcpy(exam->result->lfn, contents->fields.lfn, sizeof exam->result->lfn);
    report_unverified(contents, exam);
    report_particles(contents, exam);
    return exam->err;
}

/* Returns 1 for a container, 0 for another file that may be copied, or a negative code. */
static int detect_kind(const struct stage_contents *contents, struct limefile_source *source,
                       struct examination *exam)
{
    struct limefile_finding finding;
    if (limefile_index_size(contents->index) > 0 &&
        limefile_index_is_container(contents->index))
        return 1;
    if (exam->options->any_file)
        return 0;
    int kind = limefile_detect_container(source, &finding);
    if (kind == 1)
        return 1; /* examine_records() reports its unknown version */
    if (finding.code) {
        report_finding(exam, &finding);
        return exam->err;
    }
    if (kind < 0)
        return fail_unreadable(exam, kind);
    stage_set_verdict(exam->result, LIMEFILE_UNREADABLE);
    return stage_fail(exam->result, LIMEFILE_E_MAGIC,
                      "not a LIME container; --any copies it without verification");
}

static int examine_records(struct stage_contents *contents, struct limefile_source *source,
                           struct examination *exam)
{
    exam->result->container = contents->container = true;
    exam->result->records = limefile_index_count(contents->index);
    const struct limefile_finding *fault = limefile_index_fault(contents->index);
    int err = 0;
    if (fault) {
        report_finding(exam, fault);
        err = exam->err;
    } else if (limefile_index_deviations(contents->index)) {
        err = report_deviations(source, exam);
    }
    return err ? err : examine_fields(contents, source, exam);
}

int stage_contents_examine(struct stage_contents *contents, int fd,
                           const struct stage_options *options, struct stage_result *result)
{
    struct limefile_fd file;
    struct examination exam = {options, result, 0};
    *contents = (struct stage_contents){0};
    stage_messages_release(&result->warnings);
    stage_messages_release(&result->unverified);
    result->has_verdict = false;
    limefile_fd_init(&file, fd);
    int err = limefile_index_build(&file.source, &contents->index);
    if (err) {
        err = fail_unreadable(&exam, err);
    } else {
        err = detect_kind(contents, &file.source, &exam);
        if (err > 0)
            err = examine_records(contents, &file.source, &exam);
    }
    if (!err && options->require_sums && !result->item->sum) {
        add_unverified_text(&exam, "the list of sums does not name the file");
        err = exam.err;
    }
    if (err)
        stage_contents_release(contents);
    return err;
}

void stage_contents_release(struct stage_contents *contents)
{
    if (contents->container)
        limefile_fields_release(&contents->fields);
    limefile_index_free(contents->index);
    *contents = (struct stage_contents){0};
}

static bool is_same_record(const struct limefile_record *a, const struct limefile_record *b)
{
    return a->header_offset == b->header_offset && a->bytes == b->bytes && a->mb == b->mb &&
           a->me == b->me && a->type_len == b->type_len &&
           memcmp(a->type, b->type, a->type_len) == 0;
}

/* Returns 1 if the scan finds the same records, 0 if not, or -errno. */
static int has_same_records(const struct stage_contents *contents, struct limefile_scan *scan)
{
    struct limefile_record a, b;
    uint64_t done, size, count = 0;
    int got;
    while ((got = limefile_scan_next(scan, &b)) > 0)
        if (limefile_index_get(contents->index, ++count, &a) != 0 || !is_same_record(&a, &b))
            return 0;
    limefile_scan_progress(scan, &done, &size);
    if (got < 0)
        return limefile_is_read_error(got) && got != LIMEFILE_E_SHRUNK ? got : 0;
    return count == limefile_index_count(contents->index) &&
           size == limefile_index_size(contents->index);
}

int stage_contents_match(const struct stage_contents *contents, int fd)
{
    struct limefile_fd file;
    struct limefile_scan *scan;
    if (!contents->container)
        return 1;
    limefile_fd_init(&file, fd);
    int err = limefile_scan_new(&file.source, NULL, NULL, &scan);
    if (err)
        return err;
    int fits = has_same_records(contents, scan);
    limefile_scan_free(scan);
    return fits;
}
