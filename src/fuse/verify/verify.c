/* verify.c - verdicts on records with a checksum */
#define _GNU_SOURCE
#include "proofs.h"
#include "job.h"
#include "tree.h"
#include "writer.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

enum {
    FIELDS_MAX = 100 * 1000, /* of a container; more would take too much memory */
};

const char *limefs_verdict_word(enum limefs_verdict verdict)
{
    static const char *const words[] = {"unverified", "ok", "bad", "unverified"};
    return words[verdict];
}

/* ---- proofs ---- */

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
    free(proofs->cksum);
    free(proofs);
}

static bool has_proof(const struct limefile_field *field)
{
    return field->by_checksum && field->record.type_len < LIMEFS_PROOF_TYPE_BYTES;
}

static void begin_proof(struct limefs_proof *proof, const struct limefile_field *field)
{
    const char *bad = limefile_field_why_bad(field);
    proof->field = *field;
    memcpy(proof->type, field->record.type, field->record.type_len);
    proof->field.record.type = proof->type;
    proof->why = bad ? bad : limefile_field_why_unverified(field);
    proof->verdict = bad ? LIMEFS_BAD : proof->why ? LIMEFS_UNVERIFIABLE : LIMEFS_UNVERIFIED;
}

static struct limefs_proofs *proofs_of_fields(const struct limefile_fields *fields)
{
    struct limefile_field field;
    size_t count = 0;
    for (size_t i = 0; i < fields->count; i++) {
        limefile_fields_get(fields, i, &field);
        count += has_proof(&field);
    }
    if (count > FIELDS_MAX)
        count = 0;
    struct limefs_proofs *proofs = calloc(1, sizeof *proofs + count * sizeof proofs->proof[0]);
    if (!proofs)
        return NULL;
    atomic_init(&proofs->holders, 1);
    limefs_lock_init(&proofs->lock, LIMEFS_LOCK_PROOFS);
    limefs_condition_init(&proofs->changed);
    for (size_t i = 0; i < fields->count && proofs->count < count; i++) {
        limefile_fields_get(fields, i, &field);
        if (has_proof(&field))
            begin_proof(&proofs->proof[proofs->count++], &field);
    }
    return proofs;
}

static void report_unsummed(struct limefs *fs, const struct limefs_view *view,
                            const struct limefs_proof *proof)
{
    char label[PATH_MAX];
    const struct limefile_field *field = &proof->field;
    limefs_log(LOG_ERR, "%s: record %llu: verify: bad: %s (%llu bytes)",
               limefs_tree_label(fs, view->node, label, sizeof label),
               (unsigned long long)field->record.ordinal, proof->why,
               (unsigned long long)field->record.bytes);
}

/* From the metadata, as the index shows them. */
static int make_proofs(struct limefs *fs, struct limefs_view *view, struct limefs_proofs **out)
{
    struct limefile_fd file;
    struct limefile_fields fields;
    struct limefile_index *index = limefs_view_index(fs, view);
    int err = limefile_fields_build(limefs_view_source(view, &file), index, &fields);
    if (!err) {
        *out = proofs_of_fields(&fields);
        err = *out ? 0 : -ENOMEM;
        for (size_t i = 0; !err && i < (*out)->count; i++)
            if ((*out)->proof[i].verdict == LIMEFS_BAD)
                report_unsummed(fs, view, &(*out)->proof[i]);
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
    *changes = view->proof_changes;
    limefs_unlock(&fs->lock);
    return proofs;
}

int limefs_proofs_of(struct limefs *fs, struct limefs_view *view, struct limefs_proofs **out)
{
    uint64_t changes;
    struct limefs_proofs *proofs = hold(fs, view, &changes);
    int err = proofs ? 0 : make_proofs(fs, view, &proofs);
    if (err)
        return err;
    struct limefs_proofs *superfluous = NULL;
    limefs_lock(&fs->lock);
    if (changes != view->proof_changes) {
        proofs->dropped = true; /* good for nothing but to say what there was */
    } else if (!view->proofs) {
        atomic_fetch_add(&proofs->holders, 1);
        view->proofs = proofs;
    } else if (view->proofs != proofs) { /* somebody else has made them meanwhile */
        superfluous = proofs;
        proofs = view->proofs;
        atomic_fetch_add(&proofs->holders, 1);
    }
    limefs_unlock(&fs->lock);
    limefs_proofs_release(superfluous);
    *out = proofs;
    return 0;
}

static void forget(struct limefs_view *view)
{
    struct limefs_proofs *proofs = view->proofs;
    view->proof_changes++;
    view->proofs = NULL;
    if (!proofs)
        return;
    limefs_lock(&proofs->lock);
    proofs->dropped = true;
    pthread_cond_broadcast(&proofs->changed);
    limefs_unlock(&proofs->lock);
    limefs_proofs_release(proofs);
}

void limefs_verify_forget(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock); /* a proof may be in the making */
    forget(view);
    limefs_unlock(&fs->lock);
}

void limefs_verify_begin(struct limefs *fs)
{
    static const struct limefs_view_watch watch = {.changed = forget, .freed = forget};
    limefs_view_watch(fs, &watch);
}

static struct limefs_proof *find(struct limefs_proofs *proofs, uint64_t ordinal)
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
    *proof = find(*proofs, ordinal);
    if (*proof)
        return 0;
    limefs_proofs_release(*proofs);
    *proofs = NULL;
    return -ENODATA;
}

/* ---- verdicts ---- */

bool limefs_proof_is_right(const struct limefs_proof *proof,
                           const struct limefile_checksum *sum)
{
    return limefile_field_matches(&proof->field, sum);
}

void limefs_proof_judge(struct limefs *fs, struct limefs_proofs *proofs,
                        struct limefs_proof *proof, const struct limefile_checksum *sum)
{
    proof->verdict = limefs_proof_is_right(proof, sum) ? LIMEFS_OK : LIMEFS_BAD;
    pthread_cond_broadcast(&proofs->changed);
    atomic_fetch_add_explicit(proof->verdict == LIMEFS_OK ? &fs->verified_ok
                                                          : &fs->verified_bad,
                              1, memory_order_relaxed);
}

void limefs_proof_report(struct limefs *fs, const struct limefs_view *view,
                         const struct limefs_proof *proof, const struct limefile_checksum *sum,
                         const char *what)
{
    char label[PATH_MAX];
    const struct limefile_checksum *want = &proof->field.checksum;
    if (limefs_proof_is_right(proof, sum))
        return;
    limefs_log(LOG_ERR,
               "%s: record %llu: verify: %s the checksum %08x %08x, not %08x %08x as the "
               "container says; 'lime check --data' tells more",
               limefs_tree_label(fs, view->node, label, sizeof label),
               (unsigned long long)proof->field.record.ordinal, what, sum->suma, sum->sumb,
               want->suma, want->sumb);
}

int limefs_verify_ask(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      enum limefs_verdict *verdict)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    int err = limefs_proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    err = limefs_view_check(fs, view, &proof->field.record, NULL);
    limefs_lock(&proofs->lock);
    *verdict = err || proofs->dropped ? LIMEFS_UNVERIFIED : proof->verdict;
    limefs_unlock(&proofs->lock);
    limefs_proofs_release(proofs);
    return 0;
}

int limefs_verify_why(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      const char **why)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    int err = limefs_proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    *why = proof->why;
    limefs_proofs_release(proofs);
    return *why ? 0 : -ENODATA;
}

uint64_t limefs_verify_progress(struct limefs *fs, struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    if (limefs_proof_of(fs, view, ordinal, &proofs, &proof) != 0)
        return 0;
    uint64_t done = atomic_load(&proof->done);
    limefs_proofs_release(proofs);
    return done;
}

/* ---- all of it, now ---- */

struct reading {
    struct limefs_proof *proof;
    struct limefile_field as;
    const atomic_bool *stop;
};

static bool note_progress(void *context, uint64_t more)
{
    struct reading *reading = context;
    atomic_fetch_add(&reading->proof->done, more);
    return !atomic_load(reading->stop);
}

int limefs_verify_settle(struct limefs *fs, struct limefs_view *view,
                         const struct limefile_record *record)
{
    struct limefs_place place;
    if (!view->writer)
        return 0;
    int err = limefs_place_enter(fs, view, record->ordinal, &place);
    if (err)
        return err;
    bool settled =
        place.fd == view->fd && place.at == record->data_offset && place.bytes == record->bytes;
    if (settled)
        limefs_place_gather(fs, view, place.at, (size_t)place.bytes);
    limefs_place_leave(view);
    return settled ? 0 : -EBUSY;
}

static int sum_locally(const struct limefs_view *view, struct reading *reading,
                       struct limefile_checksum *sum)
{
    struct limefile_fd file;
    atomic_store(&reading->proof->done, 0);
    if (view->guise)
        return limefile_field_sum_source(limefs_view_source(view, &file), &reading->as, 0,
                                         note_progress, reading, sum);
    return limefile_field_sum(view->fd, &reading->as, 0, note_progress, reading, sum);
}

/* A sum of the ranks that is wrong is taken once more by this host: either may see other bytes
 * than the other. */
static int read_one_way(struct limefs *fs, struct limefs_view *view, struct reading *reading,
                        struct limefile_checksum *sum, const char **what)
{
    struct limefile_checksum local;
    *what = "the data have";
    atomic_store(&reading->proof->done, 0);
    int done =
        view->guise ? 0 : limefs_job_sum(fs, view, &reading->as, note_progress, reading, sum);
    if (done < 0)
        return done;
    if (done == 0)
        return sum_locally(view, reading, sum);
    if (limefs_proof_is_right(reading->proof, sum))
        return 0;
    int err = sum_locally(view, reading, &local);
    if (!err && limefs_proof_is_right(reading->proof, &local))
        *what = "as this host reads them, the data are right, but as the ranks do, they have";
    return err;
}

/* *sum: what is right, or comes of the first way to read it. */
static int read_all(struct limefs *fs, struct limefs_view *view, struct reading *reading,
                    struct limefile_checksum *sum, const char **what)
{
    const struct limefs_proof *proof = reading->proof;
    struct limefile_checksum another;
    const char *other;
    limefile_field_reading(&proof->field, 0, &reading->as);
    int err = read_one_way(fs, view, reading, sum, what);
    for (unsigned i = 1; !err && !limefs_proof_is_right(proof, sum) &&
                         limefile_field_reading(&proof->field, i, &reading->as);
         i++) {
        err = read_one_way(fs, view, reading, &another, &other);
        if (!err && limefs_proof_is_right(proof, &another))
            *sum = another;
    }
    return err;
}

static int verify(struct limefs *fs, struct limefs_view *view, struct limefs_proofs *proofs,
                  struct limefs_proof *proof, const atomic_bool *stop)
{
    struct limefile_checksum sum = {0};
    struct reading reading = {.proof = proof, .stop = stop};
    const char *what = NULL;
    int err = limefs_verify_settle(fs, view, &proof->field.record);
    if (!err)
        err = read_all(fs, view, &reading, &sum, &what);
    if (!err)
        err = limefs_view_check(fs, view, &proof->field.record, NULL);
    limefs_lock(&proofs->lock);
    if (!err && proofs->dropped)
        err = -ESTALE;
    if (!err) {
        atomic_fetch_add_explicit(&fs->verified_bytes, proof->field.record.bytes,
                                  memory_order_relaxed);
        limefs_proof_judge(fs, proofs, proof, &sum);
    }
    limefs_unlock(&proofs->lock);
    if (!err)
        limefs_proof_report(fs, view, proof, &sum, what);
    return err;
}

int limefs_verify_now(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      const atomic_bool *stop, enum limefs_verdict *verdict)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    int err = limefs_proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    err = proof->why ? 0 : verify(fs, view, proofs, proof, stop);
    limefs_lock(&proofs->lock);
    *verdict = proof->verdict;
    atomic_store(&proof->done, 0);
    limefs_unlock(&proofs->lock);
    limefs_proofs_release(proofs);
    return err;
}
