/* served.c - finds verdicts from the bytes that readers are served (-o verify=stream) */
#include "proofs.h"

#include <errno.h>

enum {
    NEAR_END = 64 << 20, /* most bytes that late requests are expected to bring */
};

/* Seconds that the last request waits for those that were made before it but arrive later:
 * `moment` for the first of them, `grace` while more arrive. */
static const double moment = 0.05, grace = 2;

static bool is_hopeless(const struct limefs_proof *proof)
{
    bool hopeless = false;
    for (unsigned i = 0; i < proof->tallies; i++)
        hopeless = hopeless || limefs_tally_is_hopeless(proof->tally[i]);
    return hopeless;
}

static void begin_tallies(struct limefs_proof *proof)
{
    struct limefile_field as;
    for (unsigned i = 0; i < LIMEFS_READINGS && limefile_field_reading(&proof->field, i, &as);
         i++) {
        proof->tally[i] = limefs_tally_new(&as);
        if (!proof->tally[i]) {
            limefs_proof_drop_tallies(proof);
            return;
        }
        proof->tallies++;
    }
}

/* A container that this mount writes to is left out: its readers may be served any state. */
void limefs_verify_attach(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                          struct limefs_verify_reader *reader)
{
    struct limefs_proof *proof;
    *reader = (struct limefs_verify_reader){.view = view};
    if (fs->options.verify != LIMEFS_VERIFY_STREAM || view->writer ||
        limefs_proof_of(fs, view, ordinal, &reader->proofs, &proof) != 0)
        return;
    limefs_lock(&reader->proofs->lock);
    if (proof->serving == 0 && is_hopeless(proof))
        limefs_proof_drop_tallies(proof); /* start again for the new reader */
    limefs_unlock(&reader->proofs->lock);
    reader->proof = proof;
}

void limefs_verify_detach(struct limefs_verify_reader *reader)
{
    limefs_proofs_release(reader->proofs);
    reader->proofs = NULL;
    reader->proof = NULL;
}

bool limefs_verify_precedes(const struct limefs_verify_reader *reader)
{
    return reader->proof && reader->proof->by_header;
}

bool limefs_verify_is_bad(const struct limefs_verify_reader *reader)
{
    if (!reader->proof)
        return false;
    limefs_lock(&reader->proofs->lock);
    bool bad = !reader->proofs->dropped && reader->proof->verdict == LIMEFILE_BAD;
    limefs_unlock(&reader->proofs->lock);
    return bad;
}

void limefs_verify_enter(const struct limefs_verify_reader *reader)
{
    if (!reader->proof)
        return;
    limefs_lock(&reader->proofs->lock);
    reader->proof->serving++;
    limefs_unlock(&reader->proofs->lock);
}

/* Adds bytes [from, from + n) of the record, which are about to be served, to the tally. Called
 * with the lock held; releases it while it computes the sum. */
static void take_note(struct limefs *fs, struct limefs_proofs *proofs,
                      struct limefs_tally *tally, uint64_t from, const char *bytes, size_t n)
{
    struct limefs_part part;
    uint64_t at = from, end = from + n;
    while (limefs_tally_claim(tally, &at, &end)) {
        limefs_unlock(&proofs->lock);
        limefs_tally_sum(tally, at, bytes + (at - from), (size_t)(end - at), &part);
        limefs_lock(&proofs->lock);
        limefs_tally_merge(tally, &part);
        atomic_fetch_add_explicit(&fs->stats.verified_bytes, part.n, memory_order_relaxed);
        at = end;
        end = from + n;
    }
}

static bool is_open_question(const struct limefs_proofs *proofs,
                             const struct limefs_proof *proof)
{
    return !proofs->dropped && proof->verdict == LIMEFILE_UNVERIFIED && proof->tallies &&
           !is_hopeless(proof);
}

/* True if all bytes were served. *sum is the right sum, or that of the first way to read. */
static bool is_served(const struct limefs_proof *proof, struct limefile_checksum *sum)
{
    struct limefile_checksum another;
    bool all = limefs_tally_done(proof->tally[0], sum);
    for (unsigned i = 1; all && i < proof->tallies; i++) {
        all = limefs_tally_done(proof->tally[i], &another);
        if (limefs_proof_is_right(proof, &another))
            *sum = another;
    }
    return all;
}

/* A program that reads the end has probably read all bytes before it, or will: read-ahead
 * requests much of a small record at once, and the requests arrive in any order. */
static bool is_worth_waiting(const struct limefs_proofs *proofs,
                             const struct limefs_proof *proof, double waited)
{
    if (!is_open_question(proofs, proof) || limefs_tally_left(proof->tally[0]) > NEAR_END)
        return false;
    bool half = limefs_tally_left(proof->tally[0]) <= proof->field.record.bytes / 2;
    bool others = proof->serving > proof->waiting;
    return waited < moment || (waited < grace ? half || others : half && others);
}

/* Delays a request for the end of the record until the earlier requests of a sequential reader
 * are done. Called with the lock held. */
static void wait_for_verdict(struct limefs *fs, struct limefs_proofs *proofs,
                             struct limefs_proof *proof)
{
    double begin = limefs_seconds(), waited = 0;
    /* One thread must stay free to serve those requests, and all others. */
    bool may =
        atomic_fetch_add_explicit(&fs->waiting, 1, memory_order_relaxed) + 2 <= fs->threads;
    proof->waiting++;
    while (may && is_worth_waiting(proofs, proof, waited)) {
        double next = waited < moment ? moment : waited < grace ? grace : waited + grace;
        struct timespec until = limefs_clock_time(begin + next);
        limefs_wait_until(&proofs->changed, &proofs->lock, &until);
        waited = limefs_seconds() - begin;
    }
    proof->waiting--;
    atomic_fetch_sub_explicit(&fs->waiting, 1, memory_order_relaxed);
}

/* Adds the bytes read to the tallies. Sets *judged and *sum if they decide the verdict. Returns
 * -EIO at the end of a bad record. Called with the lock held. */
static int look_at(struct limefs *fs, const struct limefs_verify_reader *reader,
                   uint64_t offset, const struct iovec *iov, int count, bool *judged,
                   struct limefile_checksum *sum)
{
    struct limefs_proofs *proofs = reader->proofs;
    struct limefs_proof *proof = reader->proof;
    if (proof->verdict == LIMEFILE_UNVERIFIED && !proof->why && !proof->tallies &&
        !proof->by_header)
        begin_tallies(proof);
    for (int i = 0; i < count; offset += iov[i++].iov_len)
        for (unsigned j = 0; j < LIMEFS_READINGS; j++)
            if (is_open_question(proofs, proof) && j < proof->tallies)
                take_note(fs, proofs, proof->tally[j], offset, iov[i].iov_base, iov[i].iov_len);
    *judged = is_open_question(proofs, proof) && is_served(proof, sum);
    if (*judged)
        limefs_proof_judge(fs, proofs, proof, sum);
    bool end = count && offset == proof->field.record.bytes;
    if (end)
        wait_for_verdict(fs, proofs, proof);
    return end && !proofs->dropped && proof->verdict == LIMEFILE_BAD ? -EIO : 0;
}

int limefs_verify_leave(struct limefs *fs, const struct limefs_verify_reader *reader,
                        uint64_t offset, const struct iovec *iov, int count)
{
    bool judged;
    struct limefile_checksum sum;
    if (!reader->proof)
        return 0;
    limefs_lock(&reader->proofs->lock);
    int err = look_at(fs, reader, offset, iov, count, &judged, &sum);
    reader->proof->serving--;
    pthread_cond_broadcast(&reader->proofs->changed);
    limefs_unlock(&reader->proofs->lock);
    if (judged)
        limefs_proof_report(fs, reader->view, reader->proof, &sum);
    return err;
}
