/* recover.c - restore a container to a valid state after a crash */
#define _GNU_SOURCE
#include "limeedit.h"
#include "header_bytes.h"
#include "cut.h"
#include "edit_io.h"
#include "redo.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the tail behind the last record ---- */

/* Returns the length of an unfinished record's type, or 0 if the type is not one that this
 * project writes: printable ASCII. A power failure may replace groups of 8 bytes by zeros. */
static size_t measure_type(const unsigned char *type, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (type[i] && (type[i] < 0x20 || type[i] > 0x7e))
            return 0;
        if (type[i])
            len = i + 1;
    }
    return len;
}

/* Returns 1 if a valid header is at `offset`, 0 if not, or an error code. */
static int is_header(struct limefile_source *source, uint64_t offset,
                     struct limefile_header *header)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    ssize_t got = limefile_read_full(source, raw, sizeof raw, offset);
    if (got < 0)
        return (int)got;
    return got == sizeof raw && limefile_header_decode(raw, header) == 0;
}

/* Returns 1 if a header follows the record of `bytes` bytes at survey->end, or if `bytes` is
 * impossible: then this record is damaged, not unfinished. Returns 0 if not, or an error. */
static int is_followed(struct limefile_source *source, const struct limefile_survey *survey,
                       uint64_t bytes)
{
    struct limefile_header header;
    uint64_t data_end, next;
    if (bytes == 0)
        return 0;
    if (limefile_record_end(survey->end, bytes, &data_end, &next) != 0)
        return 1;
    return is_header(source, next, &header);
}

/* Looks for a whole record that a program that ignores MARK_RESIZING may have appended. */
static int classify_resized_tail(struct limefile_source *source, struct limefile_survey *survey)
{
    struct limefile_header header;
    uint64_t data_end, next;
    int found = is_header(source, survey->end, &header);
    if (found < 0)
        return found;
    bool whole = found &&
                 limefile_record_end(survey->end, header.bytes, &data_end, &next) == 0 &&
                 data_end <= survey->size;
    survey->tail = whole ? LIMEFILE_TAIL_RESIZED_RECORD : LIMEFILE_TAIL_RESIZED;
    return 0;
}

/* A valid header is not that of a removed record, whose magic limefile_cut() has cleared. */
static int classify_removed_tail(struct limefile_source *source, struct limefile_survey *survey)
{
    struct limefile_header header;
    int found = is_header(source, survey->end, &header);
    survey->tail = found ? LIMEFILE_TAIL_OTHER : LIMEFILE_TAIL_REMOVED;
    return found < 0 ? found : 0;
}

/* Classifies a tail after a record without a mark: unfinished record, zeros or other bytes. */
static int classify_other_tail(struct limefile_source *source, struct limefile_survey *survey)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES] = {0};
    ssize_t got = limefile_read_full(source, raw, sizeof raw, survey->end);
    if (got < 0)
        return (int)got;
    survey->tail = LIMEFILE_TAIL_OTHER;
    if (survey->fault.code != LIMEFILE_E_TRAILING && survey->fault.code != LIMEFILE_E_MAGIC)
        return 0;
    if (!is_zero(raw, AT_BYTES))
        return 0;
    size_t len = measure_type(raw + AT_TYPE, LIMEFILE_TYPE_BYTES);
    if (len) {
        int followed = is_followed(source, survey, get_be64(raw + AT_BYTES));
        if (followed < 0)
            return followed;
        if (!followed)
            survey->tail = LIMEFILE_TAIL_UNFINISHED;
        limefile_name_encode((char *)raw + AT_TYPE, len, survey->type, sizeof survey->type);
    } else if (survey->size - survey->end <= sizeof raw && is_zero(raw, sizeof raw)) {
        survey->tail = LIMEFILE_TAIL_ZEROS;
    }
    return 0;
}

static int classify_redo_tail(struct limefile_source *source, struct limefile_survey *survey)
{
    int found = limefile_redo_find(source, survey->last, survey->size, &survey->redo);
    survey->tail = found > 0 ? LIMEFILE_TAIL_REDO : LIMEFILE_TAIL_OTHER;
    return found < 0 ? found : 0;
}

static int classify_tail(struct limefile_source *source, struct limefile_survey *survey)
{
    if (survey->replacing)
        return classify_redo_tail(source, survey);
    if (survey->resizing)
        return classify_resized_tail(source, survey);
    if (survey->removing && survey->removing == survey->records)
        return classify_removed_tail(source, survey);
    return classify_other_tail(source, survey);
}

/* ---- the survey ---- */

/* Returns true for contradicting flags that recovery does not resolve. It resolves a missing ME
 * of a marked last record, and a missing MB of the record after one with MARK_REMOVING. */
static bool is_contradiction(const struct limefile_survey *survey,
                             const struct limefile_finding *finding)
{
    switch (finding->code) {
    case LIMEFILE_D_MB_MISSING:
        return !survey->removing || finding->ordinal != survey->removing + 1;
    case LIMEFILE_D_ME_MISSING:
        return finding->ordinal != survey->resizing && finding->ordinal != survey->removing;
    default:
        return finding->code == LIMEFILE_D_MB_INSIDE;
    }
}

static void count_finding(void *context, const struct limefile_finding *finding)
{
    struct limefile_survey *survey = context;
    survey->deviations += !limefile_is_fault(finding->code);
    survey->contradictions += is_contradiction(survey, finding);
    if (finding->code == LIMEFILE_D_RESERVED) {
        survey->resizing = finding->have == MARK_RESIZING ? finding->ordinal : 0;
        survey->replacing = finding->have == MARK_REPLACING ? finding->ordinal : 0;
    }
    if (finding->code == LIMEFILE_D_RESERVED && finding->have == MARK_REMOVING)
        survey->removing = finding->ordinal;
}

static void survey_records(struct limefile_scan *scan, struct limefile_survey *survey,
                           limefile_progress_fn *progress, void *context)
{
    struct limefile_record record;
    limefile_scan_progress(scan, &survey->end, &survey->size);
    while (limefile_scan_next(scan, &record) > 0) {
        survey->records++;
        survey->messages = record.message;
        survey->before = survey->last;
        survey->last = record.header_offset;
        survey->cut_sets_me = !record.me;
        limefile_scan_progress(scan, &survey->end, &survey->size);
        if (progress)
            progress(context, survey->end, survey->size);
    }
    if (limefile_scan_fault(scan))
        survey->fault = *limefile_scan_fault(scan);
}

static bool is_header_fault(int code)
{
    return code == LIMEFILE_E_MAGIC || code == LIMEFILE_E_VERSION;
}

int limefile_survey_scan(struct limefile_source *source, limefile_progress_fn *progress,
                         void *context, struct limefile_survey *out)
{
    struct limefile_scan *scan;
    *out = (struct limefile_survey){0};
    int err = limefile_scan_new(source, count_finding, out, &scan);
    if (err)
        return err;
    survey_records(scan, out, progress, context);
    limefile_scan_free(scan);
    int code = out->fault.code;
    if (code && !limefile_is_errno(code))
        err = classify_tail(source, out);
    out->cut_sets_me = out->cut_sets_me && code && !out->resizing && !out->replacing;
    if (out->tail == LIMEFILE_TAIL_ZEROS && out->end == 0 && out->size < LIMEFILE_HEADER_BYTES)
        out->tail = LIMEFILE_TAIL_OTHER; /* a few zeros are not evidence of a container */
    out->is_container = out->records > 0 || !is_header_fault(code) ||
                        out->tail == LIMEFILE_TAIL_UNFINISHED ||
                        out->tail == LIMEFILE_TAIL_ZEROS;
    return err;
}

int limefile_survey_check(const struct limefile_survey *survey)
{
    if (survey->replacing && survey->tail != LIMEFILE_TAIL_REDO)
        return LIMEFILE_E_MIXED;
    return survey->contradictions ? LIMEFILE_E_FLAGS : 0;
}

void limefile_survey_text(const struct limefile_survey *survey, char *buf, size_t cap)
{
    uint64_t n = survey->size - survey->end;
    if (survey->tail == LIMEFILE_TAIL_UNFINISHED)
        snprintf(buf, cap,
                 "offset %" PRIu64 ": an unfinished record of type '%s', %" PRIu64
                 " bytes, cut",
                 survey->end, survey->type,
                 n > LIMEFILE_HEADER_BYTES ? n - LIMEFILE_HEADER_BYTES : 0);
    else if (survey->tail == LIMEFILE_TAIL_REDO)
        snprintf(buf, cap,
                 "offset %" PRIu64 ": new data, %" PRIu64
                 " bytes, copied into the record that was being replaced",
                 survey->redo.target, survey->redo.bytes);
    else if (survey->resizing)
        snprintf(buf, cap,
                 "offset %" PRIu64 ": %" PRIu64 " bytes after record %" PRIu64
                 ", which was being resized, cut",
                 survey->end, n, survey->records);
    else if (survey->tail == LIMEFILE_TAIL_REMOVED)
        snprintf(buf, cap,
                 "offset %" PRIu64 ": %" PRIu64
                 " bytes of a record that was being removed, cut",
                 survey->end, n);
    else
        snprintf(buf, cap, "offset %" PRIu64 ": %" PRIu64 " bytes cut", survey->end, n);
}

int limefile_survey_repair(struct limefile_source *source, const struct limefile_survey *survey)
{
    struct limefile_cut cut = {
        .end = survey->end,
        .has_previous = survey->records > 0 && !survey->resizing, /* resizing: has a mark */
        .before = survey->last,
        .set_me = survey->cut_sets_me,
    };
    if (survey->tail == LIMEFILE_TAIL_REDO)
        return limefile_redo_apply(source, survey->last, &survey->redo);
    return limefile_cut(source, &cut);
}

/* ---- recovery ---- */

struct recovery {
    struct limefile_source *source;
    limefile_report_fn *report;
    limefile_save_fn *save;
    void *context;
    bool changed;
};

static void report_change(void *context, const char *text)
{
    struct recovery *r = context;
    r->changed = true;
    if (r->report)
        r->report(r->context, text);
}

/* Saves a tail of unknown origin. Returns 0 if the caller may cut the tail, else a code. */
static int save_tail(struct recovery *r, const struct limefile_survey *survey)
{
    struct limefile_salvage rec;
    int found = 0;
    if (!r->save || survey->fault.code == LIMEFILE_E_VERSION ||
        survey->fault.code == LIMEFILE_E_RECORDS)
        return survey->fault.code;
    if (survey->tail == LIMEFILE_TAIL_OTHER)
        found = limefile_salvage_find(r->source, survey->end, survey->size, NULL, NULL, &rec);
    if (found)
        return found < 0 ? found : survey->fault.code;
    return r->save(r->context, survey->end, survey->size);
}

/* Cuts the tail, or completes a replacement. Syncs, so that the caller can clear MARK_RESIZING:
 * on the disk this mark must remain as long as the tail. */
static int cut_tail(struct recovery *r, const struct limefile_survey *survey)
{
    char text[LIMEFILE_NAME_MAX + 128];
    if (limefile_is_errno(survey->fault.code))
        return survey->fault.code;
    bool is_unknown =
        survey->tail == LIMEFILE_TAIL_OTHER || survey->tail == LIMEFILE_TAIL_RESIZED_RECORD;
    int err = is_unknown ? save_tail(r, survey) : 0;
    if (!err)
        err = limefile_survey_repair(r->source, survey);
    if (err)
        return err;
    limefile_survey_text(survey, text, sizeof text);
    report_change(r, text);
    if (survey->cut_sets_me)
        report_change(r, "the record before it ends its message now (ME)");
    return 0;
}

static int write_repair(struct recovery *r, uint64_t ordinal, uint64_t offset,
                        const void *bytes, size_t n, const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "offset %" PRIu64 ": record %" PRIu64 ": %s", offset, ordinal,
             what);
    report_change(r, text);
    return limefile_write_full(r->source, bytes, n, offset);
}

/* Zeros the last record's padding, which growing data may have overwritten. Syncs, because the
 * zeros must be on the disk before the caller clears the mark. */
static int zero_padding(struct recovery *r, const struct limefile_survey *survey,
                        uint64_t bytes)
{
    static const unsigned char zeros[LIMEFILE_ALIGN];
    unsigned char now[LIMEFILE_ALIGN];
    unsigned padding = limefile_padding(bytes);
    uint64_t at = survey->last + LIMEFILE_HEADER_BYTES + bytes;
    ssize_t got = limefile_read_full(r->source, now, padding, at);
    if (got < 0)
        return (int)got;
    if (got == (ssize_t)padding && is_zero(now, padding))
        return 0;
    int err = write_repair(r, survey->records, at, zeros, padding, "padding set to zero");
    return err ? err : limefile_sync(r->source);
}

/* Sets ME of the last record, and clears the mark MARK_RESIZING or MARK_REMOVING. */
static int repair_last(struct recovery *r, const struct limefile_survey *survey)
{
    struct limefile_header header;
    unsigned char word[LIMEFILE_WORD];
    if (survey->records == 0)
        return 0;
    int err = limefile_edit_read_header(r->source, survey->last, &header);
    if (!err)
        err = limefile_edit_read_start(r->source, survey->last, word);
    if (!err && (survey->fault.code || word[AT_RESERVED] == MARK_RESIZING))
        err = zero_padding(r, survey, header.bytes);
    if (err)
        return err;
    bool marked = word[AT_RESERVED] == MARK_RESIZING || word[AT_RESERVED] == MARK_REMOVING;
    if (header.me && !marked)
        return 0;
    word[AT_FLAGS] |= FLAG_ME;
    word[AT_RESERVED] = marked ? 0 : word[AT_RESERVED];
    return write_repair(r, survey->records, survey->last, word, sizeof word,
                        header.me ? "the mark of an interrupted change cleared" : "ME set");
}

/* Undoes the removal of the last record if a crash interrupted it before the cut. */
static int undo_removal(struct recovery *r, const struct limefile_survey *survey)
{
    struct limefile_header last;
    unsigned char word[LIMEFILE_WORD];
    if (survey->records < 2)
        return 0;
    int err = limefile_edit_read_start(r->source, survey->before, word);
    if (!err)
        err = limefile_edit_read_header(r->source, survey->last, &last);
    if (err || word[AT_RESERVED] != MARK_REMOVING)
        return err;
    if (!last.mb)
        word[AT_FLAGS] &= (unsigned char)~FLAG_ME;
    word[AT_RESERVED] = 0;
    return write_repair(r, survey->records - 1, survey->before, word, sizeof word,
                        "the mark of an interrupted change cleared");
}

int limefile_recover(struct limefile_source *source, limefile_report_fn *report,
                     limefile_save_fn *save, void *context)
{
    struct limefile_survey survey;
    struct recovery r = {.source = source, .report = report, .save = save, .context = context};
    int err = limefile_survey_scan(source, NULL, NULL, &survey);
    if (err)
        return err;
    if (!survey.is_container)
        return survey.fault.code;
    err = limefile_survey_check(&survey);
    if (!err && survey.fault.code)
        err = cut_tail(&r, &survey);
    bool was_marked = survey.resizing || survey.removing;
    if (!err && (survey.fault.code || was_marked))
        err = repair_last(&r, &survey);
    if (!err && survey.removing)
        err = undo_removal(&r, &survey);
    if (!err && r.changed)
        err = source->ops->sync(source);
    return err;
}

/* ---- saved tails ---- */

/* Creates a file that no other user can read before it has the container's owner and mode. */
static int create_private(int dir_fd, const char *name, int container)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    limefile_attributes_copy(container, fd); /* if this fails, the file stays private */
    return fd;
}

int limefile_create_cut_file(int dir_fd, const char *name, uint64_t from, int container,
                             char **path)
{
    for (unsigned n = 0;; n++) {
        char suffix[16] = "";
        if (n)
            snprintf(suffix, sizeof suffix, ".%u", n);
        if (asprintf(path, "%s.cut-%" PRIu64 "%s", name, from, suffix) < 0) {
            *path = NULL;
            return -ENOMEM;
        }
        int fd = create_private(dir_fd, *path, container);
        if (fd != -EEXIST || n == UINT16_MAX)
            return fd;
        free(*path);
    }
}
