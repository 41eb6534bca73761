/* store.c - gather writes into extents, which the job writes and syncs */
#define _GNU_SOURCE
#include "store.h"
#include "caller.h"
#include "link.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum {
    SMALL = 64 * 1024, /* bytes; smaller writes do not make a stream */
    SYNCS_AT_ONCE = 8, /* leave room for other requests */
};

/* A parcel that receives no bytes for this time may be taken for another stream. */
static const double idle_seconds = 1;

static char *bytes_of(const struct limefs_job *job, const struct limefs_parcel *parcel)
{
    uint64_t slot = job->forward.slots + (uint64_t)(parcel - job->parcels);
    return job->window.data + slot * job->forward.extent + parcel->from % job->forward.extent;
}

/* ---- writes by the daemon ---- */

/* Writes the parcel's bytes to the container. Call it without the job's lock. */
static int write_out(const struct limefs_job *job, const struct limefs_parcel *parcel)
{
    const char *bytes = bytes_of(job, parcel);
    for (unsigned i = 0; i < parcel->there.count; i++) {
        const struct limefs_span *span = &parcel->there.span[i];
        int err = limefile_fd_stream(parcel->written->fd, bytes + (span->from - parcel->from),
                                     (size_t)(span->to - span->from), span->from);
        if (err)
            return err;
    }
    return 0;
}

/* Empties the parcel: its bytes are in the container, or their write has failed. Sets
 * `unsynced`, because a sync since they were gathered may have cleared it without them. */
static void empty(struct limefs_job *job, struct limefs_parcel *parcel)
{
    parcel->written->unsynced = true;
    parcel->state = LIMEFS_PARCEL_EMPTY;
    limefs_job_change_end(job, parcel->written->snap, &parcel->change);
}

/* Writes the parcel locally, without the lock. The next flush or sync returns the error. */
static void finish_locally(struct limefs_job *job, struct limefs_parcel *parcel)
{
    parcel->state = LIMEFS_PARCEL_LOCAL;
    limefs_unlock(&job->lock);
    uid_t caller = limefs_caller_swap(job->fs, parcel->uid);
    int err = write_out(job, parcel);
    limefs_caller_swap(job->fs, caller);
    limefs_lock(&job->lock);
    if (err)
        parcel->written->late = err;
    empty(job, parcel);
    pthread_cond_broadcast(&job->changed);
}

/* ---- writes by the job ---- */

static void send_store(struct limefs_job *job, unsigned parcel,
                       const struct limefs_job_file *file, uint64_t offset, uint64_t bytes)
{
    struct limejob_packet packet;
    struct timespec now;
    uint64_t slot = job->forward.slots + parcel;
    limejob_request(&packet, LIMEJOB_WRITE, limefs_job_tag(LIMEFS_TAG_STORE, parcel));
    limejob_put_u32(&packet, file->number);
    limejob_put_u64(&packet, offset);
    limejob_put_u64(&packet, bytes);
    limejob_put_u64(&packet, slot * job->forward.extent + offset % job->forward.extent);
    limejob_put_u64(&packet, limefs_job_gate(job));
    clock_gettime(CLOCK_REALTIME, &now);
    limejob_put_u64(&packet, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec +
                                 (uint64_t)(limefs_job_lease(job) * 1e9));
    limejob_put_u32(&packet, job->parcels[parcel].uid);
    limefs_job_send(job, &packet);
}

static void send_out(struct limefs_job *job, struct limefs_parcel *parcel)
{
    struct limefs_job_file *file = limefs_job_file_written(job, parcel->written->snap);
    bool ready =
        file && !job->broken && job->in_flight < LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX / 2;
    parcel->state = ready ? LIMEFS_PARCEL_SENT : LIMEFS_PARCEL_FAILED;
    if (!ready)
        return;
    file->unsynced = true;
    file->loads++;
    parcel->since = file->since = limefs_seconds();
    send_store(job, (unsigned)(parcel - job->parcels), file, parcel->from,
               parcel->to - parcel->from);
}

int limefs_job_stored(struct limefs_job *job, unsigned index, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (index >= job->parcel_count || job->parcels[index].state != LIMEFS_PARCEL_SENT)
        return -EPROTO;
    struct limefs_parcel *parcel = &job->parcels[index];
    int err = limejob_get_code(reply, text, sizeof text);
    if (!err && limejob_get_u64(reply) != parcel->to - parcel->from)
        return -EPROTO;
    if (err)
        limefs_log(LOG_WARNING, "job: write: %s; the data are written locally",
                   text[0] ? text : strerror(-err));
    struct limefs_job_file *file = limefs_job_file_written(job, parcel->written->snap);
    if (file && file->loads)
        file->loads--;
    if (err) {
        parcel->state = LIMEFS_PARCEL_FAILED; /* the daemon will write it */
        return 0;
    }
    job->stored_bytes += parcel->to - parcel->from;
    empty(job, parcel);
    return 0;
}

/* Waits for a parcel that other threads use. They check the count before they wake threads. */
static void wait_to_settle(struct limefs_job *job)
{
    job->settling++;
    limefs_wait(&job->changed, &job->lock);
    job->settling--;
}

void limefs_store_rescue(struct limefs_job *job)
{
    for (struct limefs_parcel *parcel = job->parcels; parcel < job->parcels + job->parcel_count;
         parcel++) {
        while (parcel->holds || parcel->state == LIMEFS_PARCEL_LOCAL)
            wait_to_settle(job);
        if (parcel->state != LIMEFS_PARCEL_EMPTY)
            finish_locally(job, parcel);
    }
}

/* ---- parcels (write buffers) ---- */

static bool is_open(const struct limefs_job *job)
{
    return job->state == LIMEFS_JOB_SERVING && !job->broken;
}

/* Returns a parcel that has bytes of the range or may receive some. */
static struct limefs_parcel *overlapping(struct limefs_job *job,
                                         const struct limefs_job_view *written, uint64_t from,
                                         uint64_t to)
{
    for (struct limefs_parcel *parcel = job->parcels; parcel < job->parcels + job->parcel_count;
         parcel++)
        if (parcel->state != LIMEFS_PARCEL_EMPTY && parcel->written == written &&
            parcel->from < to && from < parcel->to)
            return parcel;
    return NULL;
}

/* Waits until the parcel's bytes are in the container. */
static void settle(struct limefs_job *job, struct limefs_parcel *parcel)
{
    while (parcel->holds || parcel->state == LIMEFS_PARCEL_SENT ||
           parcel->state == LIMEFS_PARCEL_LOCAL)
        wait_to_settle(job);
    if (parcel->state != LIMEFS_PARCEL_EMPTY)
        finish_locally(job, parcel);
}

/* Returns the parcel whose stream stopped first, at least idle_seconds ago. */
static struct limefs_parcel *idle(struct limefs_job *job)
{
    struct limefs_parcel *found = NULL;
    double before = limefs_seconds() - idle_seconds;
    for (struct limefs_parcel *parcel = job->parcels; parcel < job->parcels + job->parcel_count;
         parcel++)
        if (parcel->state == LIMEFS_PARCEL_FILLING && !parcel->holds &&
            parcel->since < (found ? found->since : before))
            found = parcel;
    return found;
}

/* Returns an empty parcel, waiting while the job writes all; NULL: none will become empty. */
static struct limefs_parcel *take(struct limefs_job *job)
{
    while (is_open(job)) {
        bool sent = false;
        for (struct limefs_parcel *parcel = job->parcels;
             parcel < job->parcels + job->parcel_count; parcel++) {
            if (parcel->state == LIMEFS_PARCEL_FAILED && !parcel->holds)
                finish_locally(job, parcel);
            if (parcel->state == LIMEFS_PARCEL_EMPTY)
                return parcel;
            sent = sent || parcel->state == LIMEFS_PARCEL_SENT;
        }
        struct limefs_parcel *left = sent ? NULL : idle(job);
        if (left) {
            finish_locally(job, left);
            continue;
        }
        if (!sent)
            return NULL; /* all are being filled */
        limefs_wait(&job->changed, &job->lock);
    }
    return NULL;
}

/* ---- gather writes ---- */

/* Adds a write to the stream. Returns true if the stream is long enough for the job. Requests
 * of a stream come in any order, because some wait here and others overtake them. Small
 * requests do not make a stream, but may belong to one. */
static bool follows(const struct limefs_job *job, struct limefs_run *run, size_t n, uint64_t at)
{
    uint64_t apart = at > run->next ? at - run->next : run->next - at;
    if (run->next == 0 || apart > job->parcel_count * job->forward.extent)
        *run = (struct limefs_run){.begin = at, .next = at};
    else if (at == run->begin) /* a new pass */
        run->passed.count = 0;
    else if (run->begin > at)
        run->begin = at;
    if (n >= SMALL)
        run->bytes += n;
    if (run->next < at + n)
        run->next = at + n;
    return run->bytes >= job->fs->options.forward_from;
}

/* Copies bytes into their parcel, with the lock released. Sends out a full parcel. */
static void fill(struct limefs_job *job, struct limefs_parcel *parcel, const char *buf,
                 size_t n, uint64_t at)
{
    parcel->holds++;
    limefs_unlock(&job->lock);
    memcpy(bytes_of(job, parcel) + (at - parcel->from), buf, n);
    limefs_lock(&job->lock);
    parcel->holds--;
    parcel->since = limefs_seconds();
    if (parcel->state == LIMEFS_PARCEL_FILLING && parcel->holds == 0 &&
        limefs_spans_cover(&parcel->there, parcel->from, parcel->to))
        send_out(job, parcel);
    /* A thread that waits for an empty parcel cannot use this one, unless it has failed. */
    if (parcel->holds == 0 && (job->settling || parcel->state == LIMEFS_PARCEL_FAILED))
        pthread_cond_broadcast(&job->changed);
}

/* Waits until the job has opened the container for writing, or has refused to. A file that is
 * just being closed, because it moved or was not used, is opened again. */
static bool is_ready(struct limefs_job *job, const struct limefs_view *snap)
{
    struct limefs_job_file *file = NULL;
    while (is_open(job) && (file = limefs_job_file_open(job, snap, true)) &&
           (limefs_job_file_is_opening(file) || limefs_job_file_is_closing(file)))
        limefs_wait(&job->changed, &job->lock);
    return is_open(job) && file && file->state == LIMEFS_JOB_FILE_OPEN;
}

/* Excludes bytes [from, to) from the parcel, if they are before or behind its first bytes. */
static void leave(struct limefs_parcel *parcel, uint64_t from, uint64_t to)
{
    const struct limefs_span *first = parcel->there.span;
    if (to <= first->from && to > parcel->from)
        parcel->from = to;
    if (from >= first->to && from < parcel->to)
        parcel->to = from;
}

/* Ensures that no two parcels have bytes of one range, because the order of their writes would
 * be lost; and that no parcel waits for bytes that were written directly. */
static void keep_apart(struct limefs_job *job, struct limefs_parcel *parcel,
                       const struct limefs_run *run)
{
    const struct limefs_parcel *other = job->parcels;
    for (; other < job->parcels + job->parcel_count; other++)
        if (other != parcel && other->state != LIMEFS_PARCEL_EMPTY &&
            other->written == parcel->written)
            leave(parcel, other->from, other->to);
    for (unsigned i = 0; i < run->passed.count; i++)
        leave(parcel, run->passed.span[i].from, run->passed.span[i].to);
}

static void pass(struct limefs_run *run, uint64_t from, uint64_t to)
{
    if (limefs_spans_add(&run->passed, from, to))
        return;
    run->passed.count = 0; /* older ones are behind the stream */
    limefs_spans_add(&run->passed, from, to);
}

/* Copies the bytes into a parcel that accepts them. Returns false if no gathered bytes, and no
 * late write of a lost job, are in their way. */
static bool join(struct limefs_job *job, struct limefs_job_view *written, const char *buf,
                 size_t n, uint64_t at)
{
    struct limefs_parcel *parcel;
    for (;;) {
        limefs_job_outlast(job, written->snap->id, at, at + n);
        parcel = overlapping(job, written, at, at + n);
        if (!parcel)
            return false;
        if (parcel->state == LIMEFS_PARCEL_FILLING && parcel->uid == limefs_caller_uid() &&
            parcel->from <= at && at + n <= parcel->to &&
            limefs_spans_add(&parcel->there, at, at + n)) {
            fill(job, parcel, buf, n, at);
            return true;
        }
        settle(job, parcel);
    }
}

/* Makes an empty parcel that of the extent with these bytes, and copies them into it. */
static void begin(struct limefs_job *job, struct limefs_parcel *parcel,
                  struct limefs_job_view *written, const struct limefs_run *run,
                  const char *buf, size_t n, uint64_t at)
{
    /* The run may have changed in the meantime, and begin elsewhere. */
    uint64_t extent = job->forward.extent, first = at / extent * extent;
    *parcel = (struct limefs_parcel){
        .state = LIMEFS_PARCEL_FILLING,
        .written = written,
        .uid = limefs_caller_uid(),
        .from = run->begin > at      ? at
                : run->begin > first ? run->begin
                                     : first,
        .to = first + extent,
    };
    limefs_spans_add(&parcel->there, at, at + n);
    keep_apart(job, parcel, run);
    parcel->change = (struct limefs_change){
        .snap_id = written->snap->id, .from = parcel->from, .to = parcel->to};
    limefs_job_change_begin(job, &parcel->change);
    fill(job, parcel, buf, n, at);
}

/* Gathers the part of a request within one extent. Returns true if the bytes were taken, false
 * if the caller may write them before it releases the lock for anything else. */
static bool put_part(struct limefs_job *job, struct limefs_job_view *written,
                     const struct limefs_run *run, const char *buf, size_t n, uint64_t at)
{
    while (!join(job, written, buf, n, at)) {
        struct limefs_parcel *parcel = NULL;
        if (run && is_ready(job, written->snap) && !overlapping(job, written, at, at + n))
            parcel = take(job);
        /* While this thread waited, another one may have made a parcel with these bytes, or a
         * lost job may have kept them. */
        if (overlapping(job, written, at, at + n) ||
            limefs_job_is_dreaded(job, written->snap->id, at, at + n))
            continue;
        if (!parcel)
            return false;
        begin(job, parcel, written, run, buf, n, at);
        break;
    }
    return true;
}

int limefs_store_put(struct limefs *fs, struct limefs_job_view *written, struct limefs_run *run,
                     const char *buf, size_t n, uint64_t at)
{
    struct limefs_job *job = fs->job;
    int err = 0;
    if (!job || job->parcel_count == 0)
        return 0;
    limefs_lock(&job->lock);
    bool stream = follows(job, run, n, at) && is_open(job);
    while (n && !err) {
        uint64_t room = job->forward.extent - at % job->forward.extent;
        size_t part = n < room ? n : (size_t)room;
        if (!put_part(job, written, stream ? run : NULL, buf, part, at)) {
            pass(run, at, at + part);
            limefs_unlock(&job->lock);
            err = limefile_fd_stream(written->fd, buf, part, at);
            limefs_lock(&job->lock);
        }
        buf += part;
        at += part;
        n -= part;
    }
    limefs_unlock(&job->lock);
    return err ? err : 1;
}

/* ---- flush ---- */

int limefs_store_flush(struct limefs *fs, struct limefs_job_view *written, uint64_t from,
                       uint64_t to)
{
    struct limefs_parcel *parcel;
    struct limefs_job *job = fs->job;
    if (!job || job->parcel_count == 0)
        return 0;
    limefs_lock(&job->lock);
    while ((parcel = overlapping(job, written, from, to)))
        settle(job, parcel);
    int err = written->late;
    written->late = 0;
    limefs_unlock(&job->lock);
    return err;
}

/* ---- sync by the ranks ---- */

static bool is_still_open(const struct limefs_job *job, uint64_t connection)
{
    return job->state == LIMEFS_JOB_SERVING && !job->broken && job->connections == connection;
}

static bool has_room_to_sync(const struct limefs_job *job)
{
    unsigned under_way = 0;
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        under_way += !sync->done;
    return under_way < SYNCS_AT_ONCE && job->in_flight < LIMEJOB_IN_FLIGHT_MAX;
}

static void unlink_sync(struct limefs_job *job, const struct limefs_job_sync *sync)
{
    struct limefs_job_sync **at = &job->syncs;
    while (*at != sync)
        at = &(*at)->next;
    *at = sync->next;
    pthread_cond_broadcast(&job->changed); /* there is room for another sync */
}

static void send_sync(struct limefs_job *job, const struct limefs_job_file *file,
                      uint32_t number)
{
    struct limejob_packet packet;
    limejob_request(&packet, LIMEJOB_SYNC, limefs_job_tag(LIMEFS_TAG_SYNC, number));
    limejob_put_u32(&packet, file->number);
    limefs_job_send(job, &packet);
}

/* Makes all ranks sync. Waits for room for the request, and for the reply. Returns true and the
 * reply's code, or false if the job has gone. */
static bool ask_to_sync(struct limefs_job *job, struct limefs_job_file *file,
                        uint64_t connection, int *code)
{
    while (is_still_open(job, connection) && !has_room_to_sync(job))
        limefs_wait(&job->changed, &job->lock);
    if (!is_still_open(job, connection))
        return false;
    struct limefs_job_sync sync = {.next = job->syncs,
                                   .snap_id = file->snap_id,
                                   .tag = ++job->sync_tag,
                                   .since = limefs_seconds()};
    /* cppcheck-suppress autoVariables ; it is taken out below */
    job->syncs = &sync;
    file->unsynced = false;
    send_sync(job, file, sync.tag);
    while (!sync.done && is_still_open(job, connection))
        limefs_wait(&job->changed, &job->lock);
    unlink_sync(job, &sync);
    *code = sync.code;
    return sync.done;
}

/* Repeats the request until it was done or has failed; if the job is busy, after another reply.
 * Sets *elsewhere if ranks on other hosts may not have synced. */
static int sync_ranks(struct limefs_job *job, struct limefs_job_file *file, bool *elsewhere)
{
    uint64_t connection = job->connections;
    bool others = job->greeting.hosts > 1, done;
    int code = 0;
    file->syncs++; /* the file stays open in the meantime */
    file->loads++;
    while ((done = ask_to_sync(job, file, connection, &code)) && code == -EAGAIN &&
           is_still_open(job, connection)) {
        file->unsynced = true;
        if (job->in_flight > 0)
            limefs_wait(&job->changed, &job->lock);
    }
    if (is_still_open(job, connection)) {
        file->syncs--;
        file->loads--;
    }
    /* The job may have gone before the retry, or be shutting down: then it synced nothing. */
    done = done && code != -EAGAIN && code != -ESHUTDOWN;
    /* The caller's fsync() covers what ranks of this host have written. */
    *elsewhere = *elsewhere || (!done && others);
    return done ? code : 0;
}

int limefs_store_sync(struct limefs *fs, struct limefs_job_view *written)
{
    struct limefs_job *job = fs->job;
    int err = limefs_store_flush(fs, written, 0, UINT64_MAX);
    if (!job || job->parcel_count == 0)
        return err;
    limefs_lock(&job->lock);
    struct limefs_job_file *file = is_still_open(job, job->connections)
                                       ? limefs_job_file_written(job, written->snap)
                                       : NULL;
    bool elsewhere = false;
    int met = 0;
    if (file && (file->unsynced || file->syncs))
        met = sync_ranks(job, file, &elsewhere);
    /* Consume the noted loss in any case, so that it is reported once. */
    elsewhere = limefs_view_take_loss(fs, written->snap) || elsewhere;
    if (elsewhere)
        met = -EIO;
    limefs_unlock(&job->lock);
    if (met)
        limefs_log(LOG_ERR, "job: sync: %s",
                   elsewhere ? "it ended before ranks on other hosts had synced their data"
                             : strerror(-met));
    return err ? err : met;
}

int limefs_job_synced(struct limefs_job *job, unsigned number, struct limejob_packet *reply)
{
    int code = limejob_get_code(reply, NULL, 0);
    for (struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (sync->tag == number) {
            /* A retry needs another reply: if none is to come, the sync has failed. */
            sync->code = code == -EAGAIN && !limefs_job_has_too_much(job, code) ? -EIO : code;
            sync->done = true;
            job->synced_from = sync->since;
            job->synced_to = limefs_seconds();
        }
    return 0;
}
