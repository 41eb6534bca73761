/* checks.c - makes the checks of a container from its metadata, and finds a record's check */
#include "checks.h"
#include "tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

void limefs_check_drop_tallies(struct limefs_check *check)
{
    while (check->tallies)
        limefs_tally_free(check->tally[--check->tallies]);
}

void limefs_checks_release(struct limefs_checks *checks)
{
    if (!checks || atomic_fetch_sub(&checks->refs, 1) > 1)
        return;
    for (size_t i = 0; i < checks->count; i++)
        limefs_check_drop_tallies(&checks->check[i]);
    limefs_lock_destroy(&checks->lock);
    pthread_cond_destroy(&checks->changed);
    free(checks);
}

/* True if a field has a checksum or, in a file of another format (gauge), a header. */
static bool is_checkable(const struct limefile_field *field, const struct limefile_gauge *gauge)
{
    return (field->checksum_ordinal || gauge) &&
           field->record.type_len < LIMEFS_CHECK_TYPE_BYTES;
}

static void init_check(struct limefs_check *check, const struct limefile_field *field,
                       const struct limefile_gauge *gauge)
{
    const char *bad = gauge ? NULL : limefile_field_why_bad(field);
    check->field = *field;
    memcpy(check->type, field->record.type, field->record.type_len);
    check->field.record.type = check->type;
    check->uses_header = gauge != NULL;
    check->reason = bad     ? bad
                    : gauge ? limefile_gauge_why_unverified(gauge)
                            : limefile_field_why_unverified(field);
    check->verdict = bad ? LIMEFILE_BAD : LIMEFILE_UNVERIFIED;
}

/* `gauge` is the file in another format; NULL for a container. */
static struct limefs_checks *create_checks(const struct limefile_fields *fields,
                                           const struct limefile_gauge *gauge)
{
    struct limefile_field field;
    size_t count = 0;
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        count += is_checkable(&field, gauge);
    }
    bool too_many = count > LIMEFS_CHECKS_MAX;
    if (too_many)
        count = 0;
    struct limefs_checks *checks = calloc(1, sizeof *checks + count * sizeof checks->check[0]);
    if (!checks)
        return NULL;
    checks->too_many = too_many;
    atomic_init(&checks->refs, 1);
    limefs_lock_init(&checks->lock, LIMEFS_LOCK_CHECKS);
    limefs_cond_init(&checks->changed);
    for (size_t i = 0; i < fields->count && checks->count < count; i++) {
        limefile_fields_get(fields, i, &field);
        if (is_checkable(&field, gauge))
            init_check(&checks->check[checks->count++], &field, gauge);
    }
    return checks;
}

void limefs_check_report_bad(struct limefs *fs, const struct limefs_snapshot *snap,
                             const struct limefs_check *check, const char *reason)
{
    char label[PATH_MAX];
    const struct limefile_field *field = &check->field;
    limefs_log(LOG_ERR, "%s: record %llu: verify: bad: %s (%llu bytes)",
               limefs_tree_display_path(fs, snap->node, label, sizeof label),
               (unsigned long long)field->record.ordinal, reason,
               (unsigned long long)field->record.bytes);
}

/* Makes the checks from the metadata, and logs the records that the metadata show to be bad. */
static int build_checks(struct limefs *fs, struct limefs_snapshot *snap,
                        struct limefs_checks **out)
{
    struct limefile_fd file;
    struct limefile_fields fields;
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    int err = limefile_fields_build(limefs_snapshot_source(snap, &file), index, &fields);
    if (!err) {
        *out = create_checks(&fields,
                             snap->adapter ? limefile_gauge_adapter_file(snap->adapter) : NULL);
        err = *out ? 0 : -ENOMEM;
        for (size_t i = 0; !err && i < (*out)->count; i++)
            if ((*out)->check[i].verdict == LIMEFILE_BAD)
                limefs_check_report_bad(fs, snap, &(*out)->check[i], (*out)->check[i].reason);
        limefile_fields_release(&fields);
    }
    limefile_index_free(index);
    return err;
}

/* Returns a reference to the snapshot's checks, or NULL. Sets *changes for store_checks(). */
static struct limefs_checks *ref_checks(struct limefs *fs, struct limefs_snapshot *snap,
                                        uint64_t *changes)
{
    limefs_lock(&fs->lock);
    struct limefs_checks *checks = snap->checks;
    if (checks)
        atomic_fetch_add(&checks->refs, 1);
    *changes = snap->change_count;
    limefs_unlock(&fs->lock);
    return checks;
}

/* Stores the checks in the snapshot. If the container has changed since ref_checks(), only
 * marks the checks as stale. */
static void store_checks(struct limefs *fs, struct limefs_snapshot *snap,
                         struct limefs_checks *checks, uint64_t changes)
{
    limefs_lock(&fs->lock);
    if (changes != snap->change_count) {
        checks->is_stale = true;
    } else if (!snap->checks) {
        atomic_fetch_add(&checks->refs, 1);
        snap->checks = checks;
    }
    limefs_unlock(&fs->lock);
}

int limefs_checks_get(struct limefs *fs, struct limefs_snapshot *snap,
                      struct limefs_checks **out)
{
    uint64_t changes;
    *out = ref_checks(fs, snap, &changes);
    if (*out)
        return 0;
    limefs_lock(&snap->metadata_lock);
    *out = ref_checks(fs, snap, &changes);
    int err = *out ? 0 : build_checks(fs, snap, out);
    if (!err)
        store_checks(fs, snap, *out, changes);
    limefs_unlock(&snap->metadata_lock);
    return err;
}

/* Called with fs->lock held, when the container changes or its snapshot is freed. */
static void drop_checks(struct limefs_snapshot *snap)
{
    struct limefs_checks *checks = snap->checks;
    snap->checks = NULL;
    if (!checks)
        return;
    limefs_lock(&checks->lock);
    checks->is_stale = true;
    pthread_cond_broadcast(&checks->changed);
    limefs_unlock(&checks->lock);
    limefs_checks_release(checks);
}

void limefs_verify_init(struct limefs *fs)
{
    static const struct limefs_snapshot_watch watch = {.changed = drop_checks,
                                                       .freed = drop_checks};
    limefs_snapshot_add_watch(fs, &watch);
}

struct limefs_check *limefs_check_find(struct limefs_checks *checks, uint64_t ordinal)
{
    size_t low = 0, high = checks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (checks->check[middle].field.record.ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = low < checks->count && checks->check[low].field.record.ordinal == ordinal;
    return is_found ? &checks->check[low] : NULL;
}

int limefs_check_get(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                     struct limefs_checks **checks, struct limefs_check **check)
{
    int err = limefs_checks_get(fs, snap, checks);
    if (err)
        return err;
    *check = limefs_check_find(*checks, ordinal);
    if (*check)
        return 0;
    limefs_checks_release(*checks);
    *checks = NULL;
    return -ENODATA;
}
