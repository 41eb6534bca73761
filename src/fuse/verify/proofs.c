/* proofs.c - finds in a container's metadata what its fields can be compared with */
#include "proofs.h"
#include "tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

void limefs_proof_drop_tallies(struct limefs_proof *proof)
{
    while (proof->tallies)
        limefs_tally_free(proof->tally[--proof->tallies]);
}

void limefs_proofs_release(struct limefs_proofs *proofs)
{
    if (!proofs || atomic_fetch_sub(&proofs->holders, 1) > 1)
        return;
    for (size_t i = 0; i < proofs->count; i++)
        limefs_proof_drop_tallies(&proofs->proof[i]);
    limefs_lock_destroy(&proofs->lock);
    pthread_cond_destroy(&proofs->changed);
    free(proofs);
}

/* The field of a file in another format always has a proof: the header of that file. */
static bool has_proof(const struct limefile_field *field, const struct limefile_gauge *gauge)
{
    return (field->by_checksum || gauge) && field->record.type_len < LIMEFS_PROOF_TYPE_BYTES;
}

static void begin_proof(struct limefs_proof *proof, const struct limefile_field *field,
                        const struct limefile_gauge *gauge)
{
    const char *bad = gauge ? NULL : limefile_field_why_bad(field);
    proof->field = *field;
    memcpy(proof->type, field->record.type, field->record.type_len);
    proof->field.record.type = proof->type;
    proof->by_header = gauge != NULL;
    proof->why = bad     ? bad
                 : gauge ? limefile_gauge_why_unverified(gauge)
                         : limefile_field_why_unverified(field);
    proof->verdict = bad ? LIMEFILE_BAD : LIMEFILE_UNVERIFIED;
}

/* `gauge` is the file in another format; NULL for a container. */
static struct limefs_proofs *proofs_of_fields(const struct limefile_fields *fields,
                                              const struct limefile_gauge *gauge)
{
    struct limefile_field field;
    size_t count = 0;
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        count += has_proof(&field, gauge);
    }
    bool too_many = count > LIMEFS_PROOFS_MAX;
    if (too_many)
        count = 0;
    struct limefs_proofs *proofs = calloc(1, sizeof *proofs + count * sizeof proofs->proof[0]);
    if (!proofs)
        return NULL;
    proofs->too_many = too_many;
    atomic_init(&proofs->holders, 1);
    limefs_lock_init(&proofs->lock, LIMEFS_LOCK_PROOFS);
    limefs_condition_init(&proofs->changed);
    for (size_t i = 0; i < fields->count && proofs->count < count; i++) {
        limefile_fields_get(fields, i, &field);
        if (has_proof(&field, gauge))
            begin_proof(&proofs->proof[proofs->count++], &field, gauge);
    }
    return proofs;
}

void limefs_proof_report_bad(struct limefs *fs, const struct limefs_view *view,
                             const struct limefs_proof *proof, const char *reason)
{
    char label[PATH_MAX];
    const struct limefile_field *field = &proof->field;
    limefs_log(LOG_ERR, "%s: record %llu: verify: bad: %s (%llu bytes)",
               limefs_tree_label(fs, view->node, label, sizeof label),
               (unsigned long long)field->record.ordinal, reason,
               (unsigned long long)field->record.bytes);
}

/* Makes the proofs from the container's metadata and logs records that these show as bad. */
static int make_proofs(struct limefs *fs, struct limefs_view *view, struct limefs_proofs **out)
{
    struct limefile_fd file;
    struct limefile_fields fields;
    struct limefile_index *index = limefs_view_index(fs, view);
    int err = limefile_fields_build(limefs_view_source(view, &file), index, &fields);
    if (!err) {
        *out = proofs_of_fields(&fields,
                                view->guise ? limefile_gauge_guise_file(view->guise) : NULL);
        err = *out ? 0 : -ENOMEM;
        for (size_t i = 0; !err && i < (*out)->count; i++)
            if ((*out)->proof[i].verdict == LIMEFILE_BAD)
                limefs_proof_report_bad(fs, view, &(*out)->proof[i], (*out)->proof[i].why);
        limefile_fields_release(&fields);
    }
    limefile_index_free(index);
    return err;
}

static struct limefs_proofs *hold(struct limefs *fs, struct limefs_view *view,
                                  uint64_t *changes)
{
    limefs_lock(&fs->lock);
    struct limefs_proofs *proofs = view->proofs;
    if (proofs)
        atomic_fetch_add(&proofs->holders, 1);
    *changes = view->changes;
    limefs_unlock(&fs->lock);
    return proofs;
}

/* Stores the proofs in the view for later callers. If the container has changed in the
 * meantime, the proofs are only marked as dropped. */
static void keep(struct limefs *fs, struct limefs_view *view, struct limefs_proofs *proofs,
                 uint64_t changes)
{
    limefs_lock(&fs->lock);
    if (changes != view->changes) {
        proofs->dropped = true;
    } else if (!view->proofs) {
        atomic_fetch_add(&proofs->holders, 1);
        view->proofs = proofs;
    }
    limefs_unlock(&fs->lock);
}

int limefs_proofs_of(struct limefs *fs, struct limefs_view *view, struct limefs_proofs **out)
{
    uint64_t changes;
    *out = hold(fs, view, &changes);
    if (*out)
        return 0;
    limefs_lock(&view->describing);
    *out = hold(fs, view, &changes);
    int err = *out ? 0 : make_proofs(fs, view, out);
    if (!err)
        keep(fs, view, *out, changes);
    limefs_unlock(&view->describing);
    return err;
}

static void forget(struct limefs_view *view)
{
    struct limefs_proofs *proofs = view->proofs;
    view->proofs = NULL;
    if (!proofs)
        return;
    limefs_lock(&proofs->lock);
    proofs->dropped = true;
    pthread_cond_broadcast(&proofs->changed);
    limefs_unlock(&proofs->lock);
    limefs_proofs_release(proofs);
}

void limefs_verify_begin(struct limefs *fs)
{
    static const struct limefs_view_watch watch = {.changed = forget, .freed = forget};
    limefs_view_watch(fs, &watch);
}

struct limefs_proof *limefs_proof_find(struct limefs_proofs *proofs, uint64_t ordinal)
{
    size_t low = 0, high = proofs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (proofs->proof[middle].field.record.ordinal < ordinal)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < proofs->count && proofs->proof[low].field.record.ordinal == ordinal;
    return found ? &proofs->proof[low] : NULL;
}

int limefs_proof_of(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                    struct limefs_proofs **proofs, struct limefs_proof **proof)
{
    int err = limefs_proofs_of(fs, view, proofs);
    if (err)
        return err;
    *proof = limefs_proof_find(*proofs, ordinal);
    if (*proof)
        return 0;
    limefs_proofs_release(*proofs);
    *proofs = NULL;
    return -ENODATA;
}
