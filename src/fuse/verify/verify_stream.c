/* verify_stream.c - finds verdicts from the bytes that readers are served (-o verify=stream) */
#include "checks.h"

#include <errno.h>

enum { LATE_BYTES_MAX = 64 << 20 }; /* most bytes that late requests are expected to bring */

/* Seconds. The kernel may deliver a request for a record's end before requests that its reader
 * made earlier. The request for the end then waits for the others: always for short_wait, and
 * after that as long as is_worth_waiting(). */
static const double short_wait = 0.05, long_wait = 2;

static bool has_abandoned_tally(const struct limefs_check *check)
{
    bool is_abandoned = false;
    for (unsigned i = 0; i < check->tallies; i++)
        is_abandoned = is_abandoned || limefs_tally_is_abandoned(check->tally[i]);
    return is_abandoned;
}

/* Creates all tallies or, if memory is short, none. Called with the lock held. */
static void create_tallies(struct limefs_check *check)
{
    struct limefile_field field;
    for (unsigned i = 0; i < LIMEFS_READINGS && limefile_field_layout(&check->field, i, &field);
         i++) {
        check->tally[i] = limefs_tally_new(&field);
        if (!check->tally[i]) {
            limefs_check_drop_tallies(check);
            return;
        }
        check->tallies++;
    }
}

/* Does not attach to a container that this mount writes to: reads may mix several states. */
void limefs_verify_attach(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                          struct limefs_verify_reader *reader)
{
    struct limefs_check *check;
    *reader = (struct limefs_verify_reader){.snap = snap};
    if (fs->options.verify != LIMEFS_VERIFY_STREAM || snap->writer ||
        limefs_check_get(fs, snap, ordinal, &reader->checks, &check) != 0)
        return;
    limefs_lock(&reader->checks->lock);
    if (check->active_reads == 0 && has_abandoned_tally(check))
        limefs_check_drop_tallies(check); /* start again for the new reader */
    limefs_unlock(&reader->checks->lock);
    reader->check = check;
}

void limefs_verify_detach(struct limefs_verify_reader *reader)
{
    limefs_checks_release(reader->checks);
    reader->checks = NULL;
    reader->check = NULL;
}

bool limefs_verify_is_due_before_read(const struct limefs_verify_reader *reader)
{
    return reader->check && reader->check->uses_header;
}

bool limefs_verify_is_bad(const struct limefs_verify_reader *reader)
{
    if (!reader->check)
        return false;
    limefs_lock(&reader->checks->lock);
    bool bad = !reader->checks->is_stale && reader->check->verdict == LIMEFILE_BAD;
    limefs_unlock(&reader->checks->lock);
    return bad;
}

void limefs_verify_read_begin(const struct limefs_verify_reader *reader)
{
    if (!reader->check)
        return;
    limefs_lock(&reader->checks->lock);
    reader->check->active_reads++;
    limefs_unlock(&reader->checks->lock);
}

/* Adds bytes [from, from + n) of the record, which are about to be served, to the tally. Called
 * with the lock held; releases it while it computes the sum. */
static void add_served(struct limefs *fs, struct limefs_checks *checks,
                       struct limefs_tally *tally, uint64_t from, const char *bytes, size_t n)
{
    struct limefs_tally_part part;
    uint64_t at = from, end = from + n;
    while (limefs_tally_claim(tally, &at, &end)) {
        limefs_unlock(&checks->lock);
        limefs_tally_sum(tally, at, bytes + (at - from), (size_t)(end - at), &part);
        limefs_lock(&checks->lock);
        limefs_tally_merge(tally, &part);
        atomic_fetch_add_explicit(&fs->stats.verified_bytes, part.n, memory_order_relaxed);
        at = end;
        end = from + n;
    }
}

static bool is_undecided(const struct limefs_checks *checks, const struct limefs_check *check)
{
    return !checks->is_stale && check->verdict == LIMEFILE_UNVERIFIED && check->tallies &&
           !has_abandoned_tally(check);
}

/* True if all bytes were served. *sum is the sum that matches, or that of the first layout. */
static bool get_served_sum(const struct limefs_check *check, struct limefile_checksum *sum)
{
    struct limefile_checksum another;
    bool all = limefs_tally_result(check->tally[0], sum);
    for (unsigned i = 1; all && i < check->tallies; i++) {
        all = limefs_tally_result(check->tally[i], &another);
        if (limefs_check_matches(check, &another))
            *sum = another;
    }
    return all;
}

/* True if a request for the end should go on waiting for earlier requests. Two facts suggest
 * that earlier requests are still to come: half of the bytes are claimed; other reads of the
 * record are under way. One is enough up to long_wait, both are needed after that. */
static bool is_worth_waiting(const struct limefs_checks *checks,
                             const struct limefs_check *check, double waited)
{
    if (!is_undecided(checks, check) ||
        limefs_tally_unclaimed(check->tally[0]) > LATE_BYTES_MAX)
        return false;
    bool half = limefs_tally_unclaimed(check->tally[0]) <= check->field.record.bytes / 2;
    bool others = check->active_reads > check->waiting_reads;
    return waited < short_wait || (waited < long_wait ? half || others : half && others);
}

/* Delays a request for the end of the record until the earlier requests of a sequential reader
 * are done. Called with the lock held, which it releases while it waits. */
static void wait_for_verdict(struct limefs *fs, struct limefs_checks *checks,
                             struct limefs_check *check)
{
    double begin = limefs_clock_seconds(), waited = 0;
    /* One thread must stay free for the earlier requests and for those to other files. */
    bool can_wait =
        atomic_fetch_add_explicit(&fs->verify_waiters, 1, memory_order_relaxed) + 2 <=
        fs->threads;
    check->waiting_reads++;
    while (can_wait && is_worth_waiting(checks, check, waited)) {
        double next = waited < short_wait ? short_wait : long_wait;
        if (waited >= long_wait)
            next += waited;
        struct timespec until = limefs_clock_timespec(begin + next);
        limefs_cond_wait_until(&checks->changed, &checks->lock, &until);
        waited = limefs_clock_seconds() - begin;
    }
    check->waiting_reads--;
    atomic_fetch_sub_explicit(&fs->verify_waiters, 1, memory_order_relaxed);
}

/* Adds the bytes read to the tallies. Sets *is_decided to whether they now decide the verdict;
 * if they do, also sets *sum. Returns -EIO at the end of a bad record. Called with the lock
 * held. */
static int tally_read(struct limefs *fs, const struct limefs_verify_reader *reader,
                      uint64_t offset, const struct iovec *iov, int count, bool *is_decided,
                      struct limefile_checksum *sum)
{
    struct limefs_checks *checks = reader->checks;
    struct limefs_check *check = reader->check;
    if (check->verdict == LIMEFILE_UNVERIFIED && !check->reason && !check->tallies &&
        !check->uses_header)
        create_tallies(check);
    for (int i = 0; i < count; offset += iov[i++].iov_len)
        for (unsigned j = 0; j < LIMEFS_READINGS; j++)
            if (is_undecided(checks, check) && j < check->tallies)
                add_served(fs, checks, check->tally[j], offset, iov[i].iov_base,
                           iov[i].iov_len);
    *is_decided = is_undecided(checks, check) && get_served_sum(check, sum);
    if (*is_decided)
        limefs_check_set_verdict(fs, checks, check, sum);
    bool at_end = count && offset == check->field.record.bytes;
    if (at_end)
        wait_for_verdict(fs, checks, check);
    return at_end && !checks->is_stale && check->verdict == LIMEFILE_BAD ? -EIO : 0;
}

int limefs_verify_read_end(struct limefs *fs, const struct limefs_verify_reader *reader,
                           uint64_t offset, const struct iovec *iov, int count)
{
    bool is_decided;
    struct limefile_checksum sum;
    if (!reader->check)
        return 0;
    limefs_lock(&reader->checks->lock);
    int err = tally_read(fs, reader, offset, iov, count, &is_decided, &sum);
    reader->check->active_reads--;
    pthread_cond_broadcast(&reader->checks->changed);
    limefs_unlock(&reader->checks->lock);
    if (is_decided)
        limefs_check_report_sum(fs, reader->snap, reader->check, &sum);
    return err;
}
