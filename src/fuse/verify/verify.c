/* verify.c - verifies records by reading them, and describes the verdicts */
#define _GNU_SOURCE
#include "proofs.h"
#include "writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    MEMORY = 64 << 20, /* bytes that a comparison with a header may take (limegauge.h) */
};

/* ---- verdicts ---- */

bool limefs_proof_is_right(const struct limefs_proof *proof,
                           const struct limefile_checksum *sum)
{
    return limefile_field_matches(&proof->field, sum);
}

/* Sets the verdict. Called with the proofs' lock held. */
static void conclude(struct limefs *fs, struct limefs_proofs *proofs,
                     struct limefs_proof *proof, bool is_right)
{
    proof->error = 0;
    proof->verdict = is_right ? LIMEFILE_GOOD : LIMEFILE_BAD;
    pthread_cond_broadcast(&proofs->changed);
    atomic_fetch_add_explicit(is_right ? &fs->stats.verified_ok : &fs->stats.verified_bad, 1,
                              memory_order_relaxed);
}

void limefs_proof_judge(struct limefs *fs, struct limefs_proofs *proofs,
                        struct limefs_proof *proof, const struct limefile_checksum *sum)
{
    proof->sum = *sum;
    conclude(fs, proofs, proof, limefs_proof_is_right(proof, sum));
}

static void explain_sum(const struct limefs_proof *proof, const struct limefile_checksum *have,
                        char reason[LIMEFS_REASON_MAX])
{
    const struct limefile_checksum *want = &proof->field.checksum;
    snprintf(reason, LIMEFS_REASON_MAX, "checksum %08x %08x, not %08x %08x as in the container",
             have->suma, have->sumb, want->suma, want->sumb);
}

void limefs_proof_report(struct limefs *fs, const struct limefs_view *view,
                         const struct limefs_proof *proof, const struct limefile_checksum *sum)
{
    char reason[LIMEFS_REASON_MAX];
    if (limefs_proof_is_right(proof, sum))
        return;
    explain_sum(proof, sum, reason);
    limefs_proof_report_bad(fs, view, proof, reason);
}

int limefs_verify_ask(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      enum limefile_verdict *verdict)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    int err = limefs_proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    err = limefs_view_check(fs, view, &proof->field.record, NULL);
    limefs_lock(&proofs->lock);
    *verdict = err || proofs->dropped ? LIMEFILE_UNVERIFIED : proof->verdict;
    err = *verdict == LIMEFILE_UNVERIFIED && proof->why ? -ENODATA : 0;
    limefs_unlock(&proofs->lock);
    limefs_proofs_release(proofs);
    return err;
}

/* ---- the verdict and its reason, as values of attributes ---- */

/* Gets the reason why a record without a proof is unverified. -ENODATA: the record does not
 * hold the data of a field. */
static int describe_unproved(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                             bool too_many, char reason[LIMEFS_REASON_MAX])
{
    struct limefile_record record;
    struct limefile_index *index = limefs_view_index(fs, view);
    int err = limefile_index_get(index, ordinal, &record);
    if (!err && !limefile_record_is_data(&record))
        err = -ENODATA;
    limefile_index_free(index);
    if (too_many)
        snprintf(reason, LIMEFS_REASON_MAX, "more than %d records have a checksum",
                 LIMEFS_PROOFS_MAX);
    else
        snprintf(reason, LIMEFS_REASON_MAX, "no checksum");
    return err;
}

/* Called with the proofs' lock held. */
static enum limefile_verdict describe(const struct limefs_proofs *proofs,
                                      const struct limefs_proof *proof,
                                      char reason[LIMEFS_REASON_MAX])
{
    bool is_bad = proof->verdict == LIMEFILE_BAD;
    bool is_unverified = proof->verdict == LIMEFILE_UNVERIFIED;
    *reason = '\0';
    if (proof->why)
        snprintf(reason, LIMEFS_REASON_MAX, "%s", proof->why);
    else if (is_bad && proof->by_header)
        snprintf(reason, LIMEFS_REASON_MAX, "%s", proofs->difference);
    else if (is_bad)
        explain_sum(proof, &proof->sum, reason);
    else if (is_unverified && proof->error)
        snprintf(reason, LIMEFS_REASON_MAX, "%s", limefile_strerror(proof->error));
    return is_unverified && proof->error ? LIMEFILE_UNREADABLE : proof->verdict;
}

int limefs_verify_describe(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                           enum limefile_verdict *verdict, char reason[LIMEFS_REASON_MAX])
{
    struct limefs_proofs *proofs;
    *verdict = LIMEFILE_UNVERIFIED;
    *reason = '\0';
    int err = limefs_proofs_of(fs, view, &proofs);
    if (err)
        return err;
    const struct limefs_proof *proof = limefs_proof_find(proofs, ordinal);
    if (!proof) {
        err = describe_unproved(fs, view, ordinal, proofs->too_many, reason);
    } else if (limefs_view_check(fs, view, &proof->field.record, NULL) == 0) {
        limefs_lock(&proofs->lock);
        if (!proofs->dropped)
            *verdict = describe(proofs, proof, reason);
        limefs_unlock(&proofs->lock);
    }
    limefs_proofs_release(proofs);
    return err;
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

/* ---- reading a whole record ---- */

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

static int sum_data(const struct limefs_view *view, struct reading *reading,
                    struct limefile_checksum *sum)
{
    struct limefile_fd file;
    atomic_store(&reading->proof->done, 0);
    return limefile_field_sum_source(limefs_view_source(view, &file), &reading->as, 0,
                                     note_progress, reading, sum);
}

/* Reads the data in each way until a sum is right. *sum is that, or that of the first way. */
static int read_all(const struct limefs_view *view, struct reading *reading,
                    struct limefile_checksum *sum)
{
    const struct limefs_proof *proof = reading->proof;
    struct limefile_checksum another;
    limefile_field_reading(&proof->field, 0, &reading->as);
    int err = sum_data(view, reading, sum);
    for (unsigned i = 1; !err && !limefs_proof_is_right(proof, sum) &&
                         limefile_field_reading(&proof->field, i, &reading->as);
         i++) {
        err = sum_data(view, reading, &another);
        if (!err && limefs_proof_is_right(proof, &another))
            *sum = another;
    }
    return err;
}

/* True if all data were read from an unchanged container; else *err is the reason. Called with
 * the proofs' lock held. */
static bool is_read(struct limefs *fs, struct limefs_proofs *proofs, struct limefs_proof *proof,
                    int *err)
{
    if (!*err && proofs->dropped)
        *err = -ESTALE;
    if (!*err)
        atomic_fetch_add_explicit(&fs->stats.verified_bytes, proof->field.record.bytes,
                                  memory_order_relaxed);
    else if (*err == -EIO || *err == LIMEFILE_E_SHRUNK)
        proof->error = *err;
    return !*err;
}

static int verify_sum(struct limefs *fs, struct limefs_view *view, struct limefs_proofs *proofs,
                      struct limefs_proof *proof, const atomic_bool *stop)
{
    struct limefile_checksum sum = {0};
    struct reading reading = {.proof = proof, .stop = stop};
    int err = limefs_verify_settle(fs, view, &proof->field.record);
    if (!err)
        err = read_all(view, &reading, &sum);
    if (!err)
        err = limefs_view_check(fs, view, &proof->field.record, NULL);
    limefs_lock(&proofs->lock);
    if (is_read(fs, proofs, proof, &err))
        limefs_proof_judge(fs, proofs, proof, &sum);
    limefs_unlock(&proofs->lock);
    if (!err)
        limefs_proof_report(fs, view, proof, &sum);
    return err;
}

/* ---- a file in another format ---- */

static bool note_sites(void *context, uint64_t more)
{
    const struct reading *reading = context;
    return note_progress(context, more * reading->proof->field.site_bytes);
}

static int verify_header(struct limefs *fs, struct limefs_view *view,
                         struct limefs_proofs *proofs, struct limefs_proof *proof,
                         const atomic_bool *stop)
{
    const struct limefile_gauge *gauge = limefile_gauge_guise_file(view->guise);
    struct limefile_gauge_totals totals;
    struct reading reading = {.proof = proof, .stop = stop};
    char text[LIMEFILE_GAUGE_DIFFERENCE_MAX] = "";
    const struct limefile_gauge_pass pass = {
        .sites = &gauge->sites,
        .source = gauge,
        .progress = note_sites,
        .context = &reading,
        .without_plaquette = !gauge->has_plaquette,
        .memory = MEMORY,
    };
    int err = limefile_gauge_run(&pass, &totals);
    bool agrees = !err && limefile_gauge_compare(gauge, &totals, text) == 0;
    if (!err)
        err = limefs_view_check(fs, view, &proof->field.record, NULL);
    limefs_lock(&proofs->lock);
    if (is_read(fs, proofs, proof, &err)) {
        memcpy(proofs->difference, text, sizeof text);
        conclude(fs, proofs, proof, agrees);
    }
    limefs_unlock(&proofs->lock);
    if (!err && !agrees)
        limefs_proof_report_bad(fs, view, proof, text);
    return err;
}

int limefs_verify_now(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      const atomic_bool *stop, enum limefile_verdict *verdict)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    int err = limefs_proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    if (!proof->why)
        err = (proof->by_header ? verify_header : verify_sum)(fs, view, proofs, proof, stop);
    limefs_lock(&proofs->lock);
    *verdict = proof->verdict;
    atomic_store(&proof->done, 0);
    limefs_unlock(&proofs->lock);
    limefs_proofs_release(proofs);
    return err;
}
