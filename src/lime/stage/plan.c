/* plan.c - a look at a file before it is copied */
#define _GNU_SOURCE
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ERRNO_MAX = 4095 }; /* codes beyond it tell what the bytes are */

#define UNVERIFIED "record %" PRIu64 ": checksum not verified: %s"

/* ---- words ---- */

void stage_words_add(struct stage_words *words, const char *format, ...)
{
    va_list args;
    if (words->count == STAGE_WORDS_MAX) {
        words->more++;
        return;
    }
    va_start(args, format);
    if (vasprintf(&words->line[words->count], format, args) >= 0)
        words->count++;
    else
        words->more++;
    va_end(args);
}

void stage_words_release(struct stage_words *words)
{
    for (unsigned i = 0; i < words->count; i++)
        free(words->line[i]);
    *words = (struct stage_words){0};
}

int stage_fail(struct stage_result *result, int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(result->reason, sizeof result->reason, format, args);
    va_end(args);
    return err < 0 ? err : -EIO;
}

/* ---- findings ---- */

struct look {
    const struct stage_options *options;
    struct stage_result *result;
    int err; /* of the first finding that is a failure */
};

static void take(struct look *look, const struct limefile_finding *finding, bool fails)
{
    char text[256];
    limefile_finding_text(finding, text, sizeof text);
    if ((fails || look->options->strict) && !look->err)
        look->err = stage_fail(look->result, finding->code, "%s", text);
    else if (!look->err)
        stage_words_add(&look->result->words, "%s", text);
}

static void report(void *context, const struct limefile_finding *finding)
{
    if (finding->code != LIMEFILE_D_FIELD_LENGTH) /* see below */
        take(context, finding, limefile_is_fault(finding->code));
}

/* The findings of the structure, one by one: the index only counts them. */
static int name_deviations(struct limefile_source *source, struct look *look)
{
    struct limefile_scan *scan;
    struct limefile_record record;
    int err = limefile_scan_new(source, report, look, &scan);
    if (err)
        return stage_fail(look->result, err, "read: %s", limefile_strerror(err));
    while (!look->err && limefile_scan_next(scan, &record) > 0)
        ;
    limefile_scan_free(scan);
    return look->err;
}

/* A field that has a checksum which is not compared is never passed over in silence; one that
 * has none is only minded by the strict: most containers have such. */
static void name_unverified(const struct stage_plan *plan, struct look *look)
{
    for (size_t i = 0; i < plan->fields.count; i++) {
        struct limefile_field field;
        limefile_fields_get(&plan->fields, i, &field);
        const char *why = limefile_field_why_unverified(&field);
        if (!field.by_checksum || !why)
            continue;
        stage_words_add(&look->result->unverified, UNVERIFIED, field.record.ordinal, why);
        if (look->options->strict && !look->err)
            look->err =
                stage_fail(look->result, -EBADMSG, UNVERIFIED, field.record.ordinal, why);
    }
}

static void demand(const struct stage_plan *plan, struct look *look)
{
    struct limefile_finding findings[2];
    for (size_t i = 0; !look->err && i < plan->fields.count; i++) {
        unsigned n = limefile_fields_demand(&plan->fields, i, findings);
        for (unsigned j = 0; j < n; j++)
            report(look, &findings[j]);
    }
}

/* Data of another length than they are described with may have been cut, unless their checksum
 * says that they are what was written. */
static void judge_lengths(const struct stage_plan *plan, struct look *look)
{
    for (size_t i = 0; i < plan->fields.count; i++) {
        struct limefile_field field, as;
        limefile_fields_get(&plan->fields, i, &field);
        if (limefile_field_fits(&field))
            continue;
        struct limefile_finding finding = {
            LIMEFILE_D_FIELD_LENGTH, field.record.header_offset + 8,
            field.record.ordinal,    field.record.bytes,
            field.expected,          NULL};
        take(look, &finding, !field.has_checksum || !limefile_field_reading(&field, 0, &as));
    }
}

static int look_at_fields(struct stage_plan *plan, struct limefile_source *source,
                          struct look *look)
{
    struct limefile_finding finding;
    int err = limefile_fields_build(source, plan->index, &plan->fields);
    if (err)
        return stage_fail(look->result, err, "read: %s", limefile_strerror(err));
    for (size_t i = 0; limefile_fields_finding(&plan->fields, i, &finding); i++)
        report(look, &finding);
    memcpy(look->result->lfn, plan->fields.lfn, sizeof look->result->lfn);
    judge_lengths(plan, look);
    name_unverified(plan, look);
    if (look->options->strict)
        demand(plan, look);
    return look->err;
}

/* What is no container, or none that anybody wants. */
static int refuse(const struct stage_plan *plan, const struct stage_options *options,
                  struct stage_result *result)
{
    if (!limefile_index_is_container(plan->index))
        return options->any ? 0 : stage_fail(result, LIMEFILE_E_MAGIC, "not a LIME container");
    if (limefile_index_size(plan->index) == 0)
        return options->any ? 0
                            : stage_fail(result, LIMEFILE_E_HEADER_CUT, "the file is empty");
    return 1;
}

static int look_at_all(struct stage_plan *plan, struct limefile_source *source,
                       struct look *look)
{
    look->result->container = plan->container = true;
    look->result->records = limefile_index_count(plan->index);
    const struct limefile_finding *fault = limefile_index_fault(plan->index);
    int err = 0;
    if (fault) {
        report(look, fault);
        err = look->err;
    } else if (limefile_index_deviations(plan->index)) {
        err = name_deviations(source, look);
    }
    return err ? err : look_at_fields(plan, source, look);
}

/* ---- the plan ---- */

/* How many records there are, or 0 if few fit: nothing is read, then. What is wrong ends it, as
 * it ends the index. */
static int count_records(struct limefile_source *source, uint64_t *count)
{
    struct limefile_scan *scan;
    struct limefile_record record;
    uint64_t done, size;
    *count = 0;
    int err = limefile_scan_new(source, NULL, NULL, &scan);
    if (err)
        return err;
    limefile_scan_progress(scan, &done, &size);
    if (size > (uint64_t)STAGE_ROOM_FEW * LIMEFILE_HEADER_BYTES)
        while (limefile_scan_next(scan, &record) > 0)
            ++*count;
    limefile_scan_free(scan);
    return 0;
}

/* Before anything is kept of each record. */
static int wait_for_room(struct stage_plan *plan, struct limefile_source *source,
                         struct stage_room *room)
{
    uint64_t records;
    int err = count_records(source, &records);
    if (!err)
        err = stage_room_enter(room, records);
    if (!err) {
        plan->room = room;
        plan->taken = records;
    }
    return err;
}

int stage_plan_build(struct stage_plan *plan, int fd, const struct stage_options *options,
                     struct stage_room *room, struct stage_result *result)
{
    struct limefile_fd file;
    struct look look = {options, result, 0};
    *plan = (struct stage_plan){0};
    stage_words_release(&result->words);
    stage_words_release(&result->unverified);
    limefile_fd_init(&file, fd);
    int err = wait_for_room(plan, &file.source, room);
    if (err == -EINTR)
        return stage_fail(result, err, "interrupted");
    if (!err)
        err = limefile_index_build(&file.source, &plan->index);
    if (err) {
        err = stage_fail(result, err, "read: %s", limefile_strerror(err));
    } else {
        err = refuse(plan, options, result);
        if (err > 0)
            err = look_at_all(plan, &file.source, &look);
    }
    if (err)
        stage_plan_release(plan);
    return err;
}

void stage_plan_release(struct stage_plan *plan)
{
    if (plan->container)
        limefile_fields_release(&plan->fields);
    limefile_index_free(plan->index);
    if (plan->room)
        stage_room_leave(plan->room, plan->taken);
    *plan = (struct stage_plan){0};
}

static bool same_record(const struct limefile_record *a, const struct limefile_record *b)
{
    return a->header_offset == b->header_offset && a->bytes == b->bytes && a->mb == b->mb &&
           a->me == b->me && a->type_len == b->type_len &&
           memcmp(a->type, b->type, a->type_len) == 0;
}

/* 1, 0 or -errno: whether the scan finds the records of the plan. */
static int same_records(const struct stage_plan *plan, struct limefile_scan *scan)
{
    struct limefile_record a, b;
    uint64_t done, size, count = 0;
    int got;
    while ((got = limefile_scan_next(scan, &b)) > 0)
        if (limefile_index_get(plan->index, ++count, &a) != 0 || !same_record(&a, &b))
            return 0;
    limefile_scan_progress(scan, &done, &size);
    if (got < 0)
        return got < -ERRNO_MAX ? 0 : got;
    return count == limefile_index_count(plan->index) &&
           size == limefile_index_size(plan->index);
}

int stage_plan_fits(const struct stage_plan *plan, int fd)
{
    struct limefile_fd file;
    struct limefile_scan *scan;
    if (!plan->container)
        return 1;
    limefile_fd_init(&file, fd);
    int err = limefile_scan_new(&file.source, NULL, NULL, &scan);
    if (err)
        return err;
    int fits = same_records(plan, scan);
    limefile_scan_free(scan);
    return fits;
}
