/* verify.c - verdicts on records with a checksum */
#define _GNU_SOURCE
#include "verify.h"
#include "clock.h"
#include "file.h"
#include "tally.h"
#include "tree.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

enum {
    NEAR_END = 64 << 20,     /* so much may be missing that they could bring */
    FIELDS_MAX = 100 * 1000, /* of a container; more would take too much memory */
    TYPE_BYTES = 32,
    READINGS = 2, /* ways to read a field */
};

/* Seconds for requests that were made before the last one, but come later: a moment for the
 * first of them, grace while they come. */
static const double moment = 0.05, grace = 2;

struct limefs_proof {
    struct limefile_field field; /* its type is the next */
    char type[TYPE_BYTES];
    enum limefs_verdict verdict;
    const char *why;           /* it has this verdict without a sum; NULL: it takes one */
    _Atomic uint64_t done;     /* bytes of a verification that is under way */
    unsigned serving, waiting; /* reads under way; of these, at the end */

    /* Of what was served, one for each way to read the field; none: nothing yet. */
    unsigned tallies;
    struct limefs_tally *tally[READINGS];
};

/* Of one state of a container. */
struct limefs_proofs {
    atomic_uint holders;
    pthread_mutex_t lock; /* taken after fs->lock, where both are */
    pthread_cond_t changed;
    bool dropped; /* the container has changed */
    size_t count;
    struct limefs_proof proof[]; /* by ordinal */
};

const char *limefs_verdict_word(enum limefs_verdict verdict)
{
    static const char *const words[] = {"unverified", "ok", "bad", "unverified"};
    return words[verdict];
}

/* ---- proofs ---- */

static void drop_tallies(struct limefs_proof *proof)
{
    while (proof->tallies)
        limefs_tally_free(proof->tally[--proof->tallies]);
}

static void release(struct limefs_proofs *proofs)
{
    if (!proofs || atomic_fetch_sub(&proofs->holders, 1) > 1)
        return;
    for (size_t i = 0; i < proofs->count; i++)
        drop_tallies(&proofs->proof[i]);
    pthread_mutex_destroy(&proofs->lock);
    pthread_cond_destroy(&proofs->changed);
    free(proofs);
}

static bool has_proof(const struct limefile_field *field)
{
    return field->by_checksum && field->record.type_len < TYPE_BYTES;
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
    pthread_mutex_init(&proofs->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&proofs->changed, &clock);
    pthread_condattr_destroy(&clock);
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
    limefile_fd_init(&file, view->fd);
    int err = limefile_fields_build(&file.source, index, &fields);
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
    pthread_mutex_lock(&fs->lock);
    struct limefs_proofs *proofs = view->proofs;
    if (proofs)
        atomic_fetch_add(&proofs->holders, 1);
    *changes = view->proof_changes;
    pthread_mutex_unlock(&fs->lock);
    return proofs;
}

/* Of a pinned view, which keeps them; the caller releases them. */
static int proofs_of(struct limefs *fs, struct limefs_view *view, struct limefs_proofs **out)
{
    uint64_t changes;
    struct limefs_proofs *proofs = hold(fs, view, &changes);
    int err = proofs ? 0 : make_proofs(fs, view, &proofs);
    if (err)
        return err;
    struct limefs_proofs *superfluous = NULL;
    pthread_mutex_lock(&fs->lock);
    if (changes != view->proof_changes) {
        proofs->dropped = true; /* good for nothing but to say what there was */
    } else if (!view->proofs) {
        atomic_fetch_add(&proofs->holders, 1);
        __atomic_store_n(&view->proofs, proofs, __ATOMIC_RELEASE);
    } else if (view->proofs != proofs) { /* somebody else has made them meanwhile */
        superfluous = proofs;
        proofs = view->proofs;
        atomic_fetch_add(&proofs->holders, 1);
    }
    pthread_mutex_unlock(&fs->lock);
    release(superfluous);
    *out = proofs;
    return 0;
}

void limefs_verify_forget_locked(struct limefs_view *view)
{
    struct limefs_proofs *proofs = view->proofs;
    view->proof_changes++;
    __atomic_store_n(&view->proofs, NULL, __ATOMIC_RELEASE);
    if (!proofs)
        return;
    pthread_mutex_lock(&proofs->lock);
    proofs->dropped = true;
    pthread_cond_broadcast(&proofs->changed);
    pthread_mutex_unlock(&proofs->lock);
    release(proofs);
}

void limefs_verify_forget(struct limefs *fs, struct limefs_view *view)
{
    pthread_mutex_lock(&fs->lock); /* a proof may be in the making */
    limefs_verify_forget_locked(view);
    pthread_mutex_unlock(&fs->lock);
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

static int proof_of(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                    struct limefs_proofs **proofs, struct limefs_proof **proof)
{
    int err = proofs_of(fs, view, proofs);
    if (err)
        return err;
    *proof = find(*proofs, ordinal);
    if (*proof)
        return 0;
    release(*proofs);
    *proofs = NULL;
    return -ENODATA;
}

/* ---- verdicts ---- */

static bool is_right(const struct limefs_proof *proof, const struct limefile_checksum *sum)
{
    return limefile_field_matches(&proof->field, sum);
}

/* With the proofs' lock held. */
static void judge(struct limefs *fs, struct limefs_proofs *proofs, struct limefs_proof *proof,
                  const struct limefile_checksum *sum)
{
    proof->verdict = is_right(proof, sum) ? LIMEFS_OK : LIMEFS_BAD;
    pthread_cond_broadcast(&proofs->changed);
    __atomic_fetch_add(proof->verdict == LIMEFS_OK ? &fs->verified_ok : &fs->verified_bad, 1,
                       __ATOMIC_RELAXED);
}

/* Without any lock. `what` has that sum. */
static void report(struct limefs *fs, const struct limefs_view *view,
                   const struct limefs_proof *proof, const struct limefile_checksum *sum,
                   const char *what)
{
    char label[PATH_MAX];
    const struct limefile_checksum *want = &proof->field.checksum;
    if (is_right(proof, sum))
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
    int err = proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    err = limefs_view_check(fs, view, &proof->field.record, NULL);
    pthread_mutex_lock(&proofs->lock);
    *verdict = err || proofs->dropped ? LIMEFS_UNVERIFIED : proof->verdict;
    pthread_mutex_unlock(&proofs->lock);
    release(proofs);
    return 0;
}

int limefs_verify_why(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      const char **why)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    int err = proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    *why = proof->why;
    release(proofs);
    return *why ? 0 : -ENODATA;
}

uint64_t limefs_verify_progress(struct limefs *fs, struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    if (proof_of(fs, view, ordinal, &proofs, &proof) != 0)
        return 0;
    uint64_t done = atomic_load(&proof->done);
    release(proofs);
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

/* What the container holds is what readers get; nothing of it is on its way, or elsewhere. */
static int settle(struct limefs *fs, struct limefs_view *view,
                  const struct limefile_record *record)
{
    struct limefs_place place;
    if (!__atomic_load_n(&view->writer, __ATOMIC_ACQUIRE))
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
    atomic_store(&reading->proof->done, 0);
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
    int done = limefs_job_sum(fs, view, &reading->as, note_progress, reading, sum);
    if (done < 0)
        return done;
    if (done == 0)
        return sum_locally(view, reading, sum);
    if (is_right(reading->proof, sum))
        return 0;
    int err = sum_locally(view, reading, &local);
    if (!err && is_right(reading->proof, &local))
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
    for (unsigned i = 1; !err && !is_right(proof, sum) &&
                         limefile_field_reading(&proof->field, i, &reading->as);
         i++) {
        err = read_one_way(fs, view, reading, &another, &other);
        if (!err && is_right(proof, &another))
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
    int err = settle(fs, view, &proof->field.record);
    if (!err)
        err = read_all(fs, view, &reading, &sum, &what);
    if (!err)
        err = limefs_view_check(fs, view, &proof->field.record, NULL);
    pthread_mutex_lock(&proofs->lock);
    if (!err && proofs->dropped)
        err = -ESTALE;
    if (!err) {
        __atomic_fetch_add(&fs->verified_bytes, proof->field.record.bytes, __ATOMIC_RELAXED);
        judge(fs, proofs, proof, &sum);
    }
    pthread_mutex_unlock(&proofs->lock);
    if (!err)
        report(fs, view, proof, &sum, what);
    return err;
}

int limefs_verify_now(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      const atomic_bool *stop, enum limefs_verdict *verdict)
{
    struct limefs_proofs *proofs;
    struct limefs_proof *proof;
    int err = proof_of(fs, view, ordinal, &proofs, &proof);
    if (err)
        return err;
    err = proof->why ? 0 : verify(fs, view, proofs, proof, stop);
    pthread_mutex_lock(&proofs->lock);
    *verdict = proof->verdict;
    atomic_store(&proof->done, 0);
    pthread_mutex_unlock(&proofs->lock);
    release(proofs);
    return err;
}

/* ---- what is served ---- */

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
    for (unsigned i = 0; i < READINGS && limefile_field_reading(&proof->field, i, &as); i++) {
        proof->tally[i] = limefs_tally_new(&as);
        if (!proof->tally[i]) {
            drop_tallies(proof);
            return;
        }
        proof->tallies++;
    }
}

/* Of a container that this mount writes to, nobody can say what its readers have been served.
 */
void limefs_verify_attach(struct limefs *fs, struct limefs_file *file)
{
    struct limefs_proof *proof;
    if (fs->options.verify != LIMEFS_VERIFY_STREAM || !file->view || file->target ||
        __atomic_load_n(&file->view->writer, __ATOMIC_ACQUIRE) ||
        proof_of(fs, file->view, file->record.ordinal, &file->proofs, &proof) != 0)
        return;
    pthread_mutex_lock(&file->proofs->lock);
    if (proof->serving == 0 && is_hopeless(proof))
        drop_tallies(proof); /* a new reader, a new chance */
    pthread_mutex_unlock(&file->proofs->lock);
    file->proof = proof;
}

void limefs_verify_detach(struct limefs_file *file)
{
    release(file->proofs);
    file->proofs = NULL;
    file->proof = NULL;
}

bool limefs_verify_is_bad(const struct limefs_file *file)
{
    if (!file->proof)
        return false;
    pthread_mutex_lock(&file->proofs->lock);
    bool bad = !file->proofs->dropped && file->proof->verdict == LIMEFS_BAD;
    pthread_mutex_unlock(&file->proofs->lock);
    return bad;
}

void limefs_verify_begin(const struct limefs_file *file)
{
    if (!file->proof)
        return;
    pthread_mutex_lock(&file->proofs->lock);
    file->proof->serving++;
    pthread_mutex_unlock(&file->proofs->lock);
}

/* Bytes [from, from + n) of the record are about to be served. With the lock held, which is
 * let go while they are summed. */
static void take_note(struct limefs *fs, struct limefs_proofs *proofs,
                      struct limefs_tally *tally, uint64_t from, const char *bytes, size_t n)
{
    struct limefs_part part;
    uint64_t at = from, end = from + n;
    while (limefs_tally_claim(tally, &at, &end)) {
        pthread_mutex_unlock(&proofs->lock);
        limefs_tally_sum(tally, at, bytes + (at - from), (size_t)(end - at), &part);
        pthread_mutex_lock(&proofs->lock);
        limefs_tally_merge(tally, &part);
        __atomic_fetch_add(&fs->verified_bytes, part.n, __ATOMIC_RELAXED);
        at = end;
        end = from + n;
    }
}

static bool is_open_question(const struct limefs_proofs *proofs,
                             const struct limefs_proof *proof)
{
    return !proofs->dropped && proof->verdict == LIMEFS_UNVERIFIED && proof->tallies &&
           !is_hopeless(proof);
}

/* All of it has been served; *sum: the right one, or the first. */
static bool is_served(const struct limefs_proof *proof, struct limefile_checksum *sum)
{
    struct limefile_checksum another;
    bool all = limefs_tally_done(proof->tally[0], sum);
    for (unsigned i = 1; all && i < proof->tallies; i++) {
        all = limefs_tally_done(proof->tally[i], &another);
        if (is_right(proof, &another))
            *sum = another;
    }
    return all;
}

/* Whoever reads the end has, as it seems, read all that comes before it; or is about to, as
 * readahead asks for much of a small record at once, and its requests come in any order. */
static bool is_worth_waiting(const struct limefs_proofs *proofs,
                             const struct limefs_proof *proof, double waited)
{
    if (!is_open_question(proofs, proof) || limefs_tally_left(proof->tally[0]) > NEAR_END)
        return false;
    bool half = limefs_tally_left(proof->tally[0]) <= proof->field.record.bytes / 2;
    bool others = proof->serving > proof->waiting;
    return waited < moment || (waited < grace ? half || others : half && others);
}

/* The end of a record is served last: not before those requests are done that a sequential
 * reader has made before. */
static void wait_for_verdict(struct limefs *fs, struct limefs_proofs *proofs,
                             struct limefs_proof *proof)
{
    double begin = limefs_seconds(), waited = 0;
    /* Somebody must serve those requests, and all others. */
    bool may = __atomic_fetch_add(&fs->waiting, 1, __ATOMIC_RELAXED) + 2 <= fs->threads;
    proof->waiting++;
    while (may && is_worth_waiting(proofs, proof, waited)) {
        double next = waited < moment ? moment : waited < grace ? grace : waited + grace;
        struct timespec until = limefs_clock_time(begin + next);
        pthread_cond_timedwait(&proofs->changed, &proofs->lock, &until);
        waited = limefs_seconds() - begin;
    }
    proof->waiting--;
    __atomic_fetch_sub(&fs->waiting, 1, __ATOMIC_RELAXED);
}

/* *judged: by these bytes, and the sum is this. */
static int look_at(struct limefs *fs, const struct limefs_file *file, uint64_t offset,
                   const struct iovec *iov, int count, bool *judged,
                   struct limefile_checksum *sum)
{
    struct limefs_proofs *proofs = file->proofs;
    struct limefs_proof *proof = file->proof;
    if (proof->verdict == LIMEFS_UNVERIFIED && !proof->tallies)
        begin_tallies(proof);
    for (int i = 0; i < count; offset += iov[i++].iov_len)
        for (unsigned j = 0; j < READINGS; j++)
            if (is_open_question(proofs, proof) && j < proof->tallies)
                take_note(fs, proofs, proof->tally[j], offset, iov[i].iov_base, iov[i].iov_len);
    *judged = is_open_question(proofs, proof) && is_served(proof, sum);
    if (*judged)
        judge(fs, proofs, proof, sum);
    bool end = count && offset == proof->field.record.bytes;
    if (end)
        wait_for_verdict(fs, proofs, proof);
    return end && !proofs->dropped && proof->verdict == LIMEFS_BAD ? -EIO : 0;
}

int limefs_verify_end(struct limefs *fs, const struct limefs_file *file, uint64_t offset,
                      const struct iovec *iov, int count)
{
    bool judged;
    struct limefile_checksum sum;
    if (!file->proof)
        return 0;
    pthread_mutex_lock(&file->proofs->lock);
    int err = look_at(fs, file, offset, iov, count, &judged, &sum);
    file->proof->serving--;
    pthread_cond_broadcast(&file->proofs->changed);
    pthread_mutex_unlock(&file->proofs->lock);
    if (judged)
        report(fs, file->view, file->proof, &sum, "what was read has");
    return err;
}
