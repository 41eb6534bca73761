/* verify.c - verifies records by reading them, and describes the verdicts */
#define _GNU_SOURCE
#include "checks.h"
#include "writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { COMPARE_MEMORY = 64 << 20 }; /* bytes of memory to compare a file with its header */

/* ---- verdicts ---- */

bool limefs_check_matches(const struct limefs_check *check, const struct limefile_checksum *sum)
{
    return limefile_field_sum_matches(&check->field, sum);
}

/* Sets the verdict. Called with checks->lock held. */
static void set_verdict(struct limefs *fs, struct limefs_checks *checks,
                        struct limefs_check *check, bool is_right)
{
    check->error = 0;
    check->verdict = is_right ? LIMEFILE_GOOD : LIMEFILE_BAD;
    pthread_cond_broadcast(&checks->changed);
    atomic_fetch_add_explicit(is_right ? &fs->stats.verified_ok : &fs->stats.verified_bad, 1,
                              memory_order_relaxed);
}

void limefs_check_set_verdict(struct limefs *fs, struct limefs_checks *checks,
                              struct limefs_check *check, const struct limefile_checksum *sum)
{
    check->sum = *sum;
    set_verdict(fs, checks, check, limefs_check_matches(check, sum));
}

static void explain_sum(const struct limefs_check *check, const struct limefile_checksum *sum,
                        char reason[LIMEFS_REASON_MAX])
{
    const struct limefile_checksum *expected = &check->field.checksum;
    snprintf(reason, LIMEFS_REASON_MAX, "checksum %08x %08x, expected %08x %08x", sum->suma,
             sum->sumb, expected->suma, expected->sumb);
}

void limefs_check_report_sum(struct limefs *fs, const struct limefs_snapshot *snap,
                             const struct limefs_check *check,
                             const struct limefile_checksum *sum)
{
    char reason[LIMEFS_REASON_MAX];
    if (limefs_check_matches(check, sum))
        return;
    explain_sum(check, sum, reason);
    limefs_check_report_bad(fs, snap, check, reason);
}

int limefs_verify_lookup(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                         enum limefile_verdict *verdict)
{
    struct limefs_checks *checks;
    struct limefs_check *check;
    int err = limefs_check_get(fs, snap, ordinal, &checks, &check);
    if (err)
        return err;
    err = limefs_snapshot_check_record(fs, snap, &check->field.record, NULL);
    limefs_lock(&checks->lock);
    *verdict = err || checks->is_stale ? LIMEFILE_UNVERIFIED : check->verdict;
    err = *verdict == LIMEFILE_UNVERIFIED && check->reason ? -ENODATA : 0;
    limefs_unlock(&checks->lock);
    limefs_checks_release(checks);
    return err;
}

/* ---- the verdict and its reason, as values of attributes ---- */

/* Gets why a record without a check is unverified. -ENODATA: it has no data of a field. */
static int describe_unchecked(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                              bool too_many, char reason[LIMEFS_REASON_MAX])
{
    struct limefile_record record;
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    int err = limefile_index_get(index, ordinal, &record);
    if (!err && !limefile_record_is_data(&record))
        err = -ENODATA;
    limefile_index_free(index);
    if (too_many)
        snprintf(reason, LIMEFS_REASON_MAX, "more than %d records have a checksum",
                 LIMEFS_CHECKS_MAX);
    else
        snprintf(reason, LIMEFS_REASON_MAX, "no checksum");
    return err;
}

/* Returns the verdict of a check and gets its reason, or "". Called with checks->lock held. */
static enum limefile_verdict describe_check(const struct limefs_checks *checks,
                                            const struct limefs_check *check,
                                            char reason[LIMEFS_REASON_MAX])
{
    bool is_bad = check->verdict == LIMEFILE_BAD;
    bool is_unverified = check->verdict == LIMEFILE_UNVERIFIED;
    *reason = '\0';
    if (check->reason)
        snprintf(reason, LIMEFS_REASON_MAX, "%s", check->reason);
    else if (is_bad && check->uses_header)
        snprintf(reason, LIMEFS_REASON_MAX, "%s", checks->difference);
    else if (is_bad)
        explain_sum(check, &check->sum, reason);
    else if (is_unverified && check->error)
        snprintf(reason, LIMEFS_REASON_MAX, "%s", limefile_strerror(check->error));
    return is_unverified && check->error ? LIMEFILE_UNREADABLE : check->verdict;
}

int limefs_verify_describe(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                           enum limefile_verdict *verdict, char reason[LIMEFS_REASON_MAX])
{
    struct limefs_checks *checks;
    *verdict = LIMEFILE_UNVERIFIED;
    *reason = '\0';
    int err = limefs_checks_get(fs, snap, &checks);
    if (err)
        return err;
    const struct limefs_check *check = limefs_check_find(checks, ordinal);
    if (!check) {
        err = describe_unchecked(fs, snap, ordinal, checks->too_many, reason);
    } else if (limefs_snapshot_check_record(fs, snap, &check->field.record, NULL) == 0) {
        limefs_lock(&checks->lock);
        if (!checks->is_stale)
            *verdict = describe_check(checks, check, reason);
        limefs_unlock(&checks->lock);
    }
    limefs_checks_release(checks);
    return err;
}

uint64_t limefs_verify_progress(struct limefs *fs, struct limefs_snapshot *snap,
                                uint64_t ordinal)
{
    struct limefs_checks *checks;
    struct limefs_check *check;
    if (limefs_check_get(fs, snap, ordinal, &checks, &check) != 0)
        return 0;
    uint64_t done = atomic_load(&check->bytes_read);
    limefs_checks_release(checks);
    return done;
}

/* ---- reading a whole record ---- */

struct verification {
    struct limefs_check *check;
    struct limefile_field field;
    const atomic_bool *stop;
};

static bool add_progress(void *context, uint64_t more)
{
    struct verification *run = context;
    atomic_fetch_add(&run->check->bytes_read, more);
    return !atomic_load(run->stop);
}

int limefs_verify_flush(struct limefs *fs, struct limefs_snapshot *snap,
                        const struct limefile_record *record)
{
    struct limefs_location place;
    if (!snap->writer)
        return 0;
    int err = limefs_location_lock(fs, snap, record->ordinal, &place);
    if (err)
        return err;
    bool is_in_container =
        place.fd == snap->fd && place.at == record->data_offset && place.bytes == record->bytes;
    if (is_in_container)
        limefs_location_flush(fs, snap, place.at, (size_t)place.bytes);
    limefs_location_unlock(snap);
    return is_in_container ? 0 : -EBUSY;
}

static int sum_record(const struct limefs_snapshot *snap, struct verification *run,
                      struct limefile_checksum *sum)
{
    struct limefile_fd file;
    atomic_store(&run->check->bytes_read, 0);
    return limefile_field_sum(limefs_snapshot_source(snap, &file), &run->field, 0, add_progress,
                              run, sum);
}

/* Sums the data in each layout until a sum matches. *sum: that sum, or the first layout's. */
static int sum_all_readings(const struct limefs_snapshot *snap, struct verification *run,
                            struct limefile_checksum *sum)
{
    const struct limefs_check *check = run->check;
    struct limefile_checksum another;
    limefile_field_layout(&check->field, 0, &run->field);
    int err = sum_record(snap, run, sum);
    for (unsigned i = 1; !err && !limefs_check_matches(check, sum) &&
                         limefile_field_layout(&check->field, i, &run->field);
         i++) {
        err = sum_record(snap, run, &another);
        if (!err && limefs_check_matches(check, &another))
            *sum = another;
    }
    return err;
}

/* *err: the result of reading the record. True if all data were read and the container has not
 * changed; if false, *err is the reason. Called with checks->lock held. */
static bool finish_read(struct limefs *fs, struct limefs_checks *checks,
                        struct limefs_check *check, int *err)
{
    if (!*err && checks->is_stale)
        *err = -ESTALE;
    if (!*err)
        atomic_fetch_add_explicit(&fs->stats.verified_bytes, check->field.record.bytes,
                                  memory_order_relaxed);
    else if (*err == -EIO || *err == LIMEFILE_E_SHRUNK)
        check->error = *err;
    return !*err;
}

static int verify_sum(struct limefs *fs, struct limefs_snapshot *snap,
                      struct limefs_checks *checks, struct limefs_check *check,
                      const atomic_bool *stop)
{
    struct limefile_checksum sum = {0};
    struct verification run = {.check = check, .stop = stop};
    int err = limefs_verify_flush(fs, snap, &check->field.record);
    if (!err)
        err = sum_all_readings(snap, &run, &sum);
    if (!err)
        err = limefs_snapshot_check_record(fs, snap, &check->field.record, NULL);
    limefs_lock(&checks->lock);
    if (finish_read(fs, checks, check, &err))
        limefs_check_set_verdict(fs, checks, check, &sum);
    limefs_unlock(&checks->lock);
    if (!err)
        limefs_check_report_sum(fs, snap, check, &sum);
    return err;
}

/* ---- a file in another format ---- */

static bool add_site_progress(void *context, uint64_t more)
{
    const struct verification *run = context;
    return add_progress(context, more * run->check->field.site_bytes);
}

static int verify_header(struct limefs *fs, struct limefs_snapshot *snap,
                         struct limefs_checks *checks, struct limefs_check *check,
                         const atomic_bool *stop)
{
    const struct limefile_gauge *gauge = limefile_gauge_adapter_file(snap->adapter);
    struct limefile_gauge_totals totals;
    struct verification run = {.check = check, .stop = stop};
    char text[LIMEFILE_GAUGE_DIFFERENCE_MAX] = "";
    const struct limefile_gauge_pass pass = {
        .sites = &gauge->sites,
        .source = gauge,
        .progress = add_site_progress,
        .context = &run,
        .without_plaquette = !gauge->has_plaquette,
        .memory = COMPARE_MEMORY,
    };
    int err = limefile_gauge_pass_run(&pass, &totals);
    bool agrees = !err && limefile_gauge_compare(gauge, &totals, text) == 0;
    if (!err)
        err = limefs_snapshot_check_record(fs, snap, &check->field.record, NULL);
    limefs_lock(&checks->lock);
    if (finish_read(fs, checks, check, &err)) {
        memcpy(checks->difference, text, sizeof text);
        set_verdict(fs, checks, check, agrees);
    }
    limefs_unlock(&checks->lock);
    if (!err && !agrees)
        limefs_check_report_bad(fs, snap, check, text);
    return err;
}

int limefs_verify_record(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                         const atomic_bool *stop, enum limefile_verdict *verdict)
{
    struct limefs_checks *checks;
    struct limefs_check *check;
    int err = limefs_check_get(fs, snap, ordinal, &checks, &check);
    if (err)
        return err;
    if (!check->reason)
        err = (check->uses_header ? verify_header : verify_sum)(fs, snap, checks, check, stop);
    limefs_lock(&checks->lock);
    *verdict = check->verdict;
    atomic_store(&check->bytes_read, 0);
    limefs_unlock(&checks->lock);
    limefs_checks_release(checks);
    return err;
}
