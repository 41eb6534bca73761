/* write_buffers.c - gather writes in buffers, which the job writes and syncs. Static functions
 * are called with job->lock held, except write_buffer() and get_memory(). */
#define _GNU_SOURCE
#include "write_buffers.h"
#include "credentials.h"
#include "job_internal.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum {
    MIN_STREAM_WRITE = 64 * 1024, /* bytes; smaller writes do not make a stream */
    SYNCS_MAX = 8,                /* SYNC requests in flight; the other room is for others */
};

/* A buffer that has received no bytes for this time may be written out and used for others. */
static const double idle_seconds = 1;

static char *get_memory(const struct limefs_job *job, const struct limefs_write_buffer *buffer)
{
    uint64_t slot = job->prefetch.slots + (uint64_t)(buffer - job->buffers);
    return job->window.data + slot * job->prefetch.extent + buffer->from % job->prefetch.extent;
}

/* ---- writes by the daemon ---- */

/* Writes the buffer's bytes to the container. Call it without the job's lock. */
static int write_buffer(const struct limefs_job *job, const struct limefs_write_buffer *buffer)
{
    const char *bytes = get_memory(job, buffer);
    for (unsigned i = 0; i < buffer->filled.count; i++) {
        const struct limefs_byte_range *range = &buffer->filled.range[i];
        int err = limefile_fd_stream(buffer->written->fd, bytes + (range->from - buffer->from),
                                     (size_t)(range->to - range->from), range->from);
        if (err)
            return err;
    }
    return 0;
}

/* Marks the buffer as empty: its bytes were written, or their write has failed. Sets `unsynced`
 * again, because a sync may have cleared it while the bytes were still in the buffer. */
static void release_buffer(struct limefs_job *job, struct limefs_write_buffer *buffer)
{
    buffer->written->unsynced = true;
    buffer->state = LIMEFS_BUFFER_EMPTY;
    limefs_job_change_end(job, buffer->written->snap, &buffer->change);
}

/* Writes the buffer from this thread, with the rights of the user whose bytes it has. Releases
 * the lock in the meantime. Stores an error for the container's next flush or sync. */
static void flush_locally(struct limefs_job *job, struct limefs_write_buffer *buffer)
{
    buffer->state = LIMEFS_BUFFER_LOCAL;
    limefs_unlock(&job->lock);
    uid_t caller = limefs_creds_swap_uid(job->fs, buffer->uid);
    int err = write_buffer(job, buffer);
    limefs_creds_swap_uid(job->fs, caller);
    limefs_lock(&job->lock);
    if (err)
        buffer->written->write_error = err;
    release_buffer(job, buffer);
    pthread_cond_broadcast(&job->changed);
}

/* ---- writes by the job ---- */

static void send_write(struct limefs_job *job, unsigned buffer,
                       const struct limefs_job_file *file, uint64_t offset, uint64_t bytes)
{
    struct limejob_packet packet;
    struct timespec now;
    uint64_t slot = job->prefetch.slots + buffer;
    limejob_request_init(&packet, LIMEJOB_WRITE, limefs_job_tag(LIMEFS_TAG_STORE, buffer));
    limejob_put_u32(&packet, file->number);
    limejob_put_u64(&packet, offset);
    limejob_put_u64(&packet, bytes);
    limejob_put_u64(&packet, slot * job->prefetch.extent + offset % job->prefetch.extent);
    limejob_put_u64(&packet, limefs_job_fence_offset(job));
    clock_gettime(CLOCK_REALTIME, &now);
    limejob_put_u64(&packet, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec +
                                 (uint64_t)(limefs_job_lease_seconds(job) * 1e9));
    limejob_put_u32(&packet, job->buffers[buffer].uid);
    limefs_job_send(job, &packet);
}

/* Sends a full buffer to the job. If the job cannot write it now, marks it as FAILED: the next
 * thread that needs the buffer, or its bytes in the container, will write it locally. */
static void submit_buffer(struct limefs_job *job, struct limefs_write_buffer *buffer)
{
    struct limefs_job_file *file = limefs_job_find_written_file(job, buffer->written->snap);
    bool ready =
        file && !job->broken && job->in_flight < LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX / 2;
    buffer->state = ready ? LIMEFS_BUFFER_SENT : LIMEFS_BUFFER_FAILED;
    if (!ready)
        return;
    file->unsynced = true;
    file->loads++;
    buffer->last_used = file->last_used = limefs_clock_seconds();
    send_write(job, (unsigned)(buffer - job->buffers), file, buffer->from,
               buffer->to - buffer->from);
}

int limefs_job_on_store(struct limefs_job *job, unsigned index, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (index >= job->buffer_count || job->buffers[index].state != LIMEFS_BUFFER_SENT)
        return -EPROTO;
    struct limefs_write_buffer *buffer = &job->buffers[index];
    int err = limejob_get_code(reply, text, sizeof text);
    if (!err && limejob_get_u64(reply) != buffer->to - buffer->from)
        return -EPROTO;
    if (err)
        limefs_log(LOG_WARNING, "job: write: %s; the data are written locally",
                   text[0] ? text : strerror(-err));
    struct limefs_job_file *file = limefs_job_find_written_file(job, buffer->written->snap);
    if (file && file->loads)
        file->loads--;
    if (err) {
        buffer->state = LIMEFS_BUFFER_FAILED; /* a thread of the daemon will write it */
        return 0;
    }
    job->stored_bytes += buffer->to - buffer->from;
    release_buffer(job, buffer);
    return 0;
}

/* Waits for a change of any buffer. Counts the waiting threads for copy_to_buffer(). */
static void wait_for_buffers(struct limefs_job *job)
{
    job->buffer_waiters++;
    limefs_cond_wait(&job->changed, &job->lock);
    job->buffer_waiters--;
}

void limefs_write_buffers_write_out(struct limefs_job *job)
{
    for (struct limefs_write_buffer *buffer = job->buffers;
         buffer < job->buffers + job->buffer_count; buffer++) {
        while (buffer->copies || buffer->state == LIMEFS_BUFFER_LOCAL)
            wait_for_buffers(job);
        if (buffer->state != LIMEFS_BUFFER_EMPTY)
            flush_locally(job, buffer);
    }
}

static bool is_serving(const struct limefs_job *job)
{
    return job->state == LIMEFS_JOB_SERVING && !job->broken;
}

/* Returns a buffer of the container whose range overlaps [from, to), or NULL. */
static struct limefs_write_buffer *find_buffer(struct limefs_job *job,
                                               const struct limefs_written *written,
                                               uint64_t from, uint64_t to)
{
    for (struct limefs_write_buffer *buffer = job->buffers;
         buffer < job->buffers + job->buffer_count; buffer++)
        if (buffer->state != LIMEFS_BUFFER_EMPTY && buffer->written == written &&
            buffer->from < to && from < buffer->to)
            return buffer;
    return NULL;
}

/* Waits while the job or another thread uses the buffer; if it still has bytes, writes them. */
static void wait_until_written(struct limefs_job *job, struct limefs_write_buffer *buffer)
{
    while (buffer->copies || buffer->state == LIMEFS_BUFFER_SENT ||
           buffer->state == LIMEFS_BUFFER_LOCAL)
        wait_for_buffers(job);
    if (buffer->state != LIMEFS_BUFFER_EMPTY)
        flush_locally(job, buffer);
}

/* Returns the partly filled buffer that has been idle longest. NULL: none for idle_seconds. */
static struct limefs_write_buffer *find_idle_buffer(struct limefs_job *job)
{
    struct limefs_write_buffer *found = NULL;
    double before = limefs_clock_seconds() - idle_seconds;
    for (struct limefs_write_buffer *buffer = job->buffers;
         buffer < job->buffers + job->buffer_count; buffer++)
        if (buffer->state == LIMEFS_BUFFER_FILLING && !buffer->copies &&
            buffer->last_used < (found ? found->last_used : before))
            found = buffer;
    return found;
}

/* Returns an empty buffer. If all are in use, waits as long as the job is writing any. Returns
 * NULL if all buffers are being filled or written locally, or if the job was lost. */
static struct limefs_write_buffer *get_empty_buffer(struct limefs_job *job)
{
    while (is_serving(job)) {
        bool sent = false;
        for (struct limefs_write_buffer *buffer = job->buffers;
             buffer < job->buffers + job->buffer_count; buffer++) {
            if (buffer->state == LIMEFS_BUFFER_FAILED && !buffer->copies)
                flush_locally(job, buffer);
            if (buffer->state == LIMEFS_BUFFER_EMPTY)
                return buffer;
            sent = sent || buffer->state == LIMEFS_BUFFER_SENT;
        }
        struct limefs_write_buffer *idle = sent ? NULL : find_idle_buffer(job);
        if (idle) {
            flush_locally(job, idle);
            continue;
        }
        if (!sent)
            return NULL;
        limefs_cond_wait(&job->changed, &job->lock);
    }
    return NULL;
}

/* ---- gather writes ---- */

/* Adds a write to the stream, or restarts the stream if the write is far from it. Returns true
 * if the stream has enough bytes to go through the job, not counting small writes. Writes may
 * come in any order, because a thread that waits for a buffer is overtaken by others. */
static bool extend_stream(const struct limefs_job *job, struct limefs_write_stream *stream,
                          size_t n, uint64_t at)
{
    uint64_t apart = at > stream->next ? at - stream->next : stream->next - at;
    if (stream->next == 0 || apart > job->buffer_count * job->prefetch.extent)
        *stream = (struct limefs_write_stream){.begin = at, .next = at};
    else if (at == stream->begin) /* the program writes the same range again */
        stream->direct.count = 0;
    else if (stream->begin > at)
        stream->begin = at;
    if (n >= MIN_STREAM_WRITE)
        stream->bytes += n;
    if (stream->next < at + n)
        stream->next = at + n;
    return stream->bytes >= job->fs->options.forward_from;
}

/* Copies bytes into the buffer, with the lock released. If the buffer is full, submits it. */
static void copy_to_buffer(struct limefs_job *job, struct limefs_write_buffer *buffer,
                           const char *buf, size_t n, uint64_t at)
{
    buffer->copies++;
    limefs_unlock(&job->lock);
    memcpy(get_memory(job, buffer) + (at - buffer->from), buf, n);
    limefs_lock(&job->lock);
    buffer->copies--;
    buffer->last_used = limefs_clock_seconds();
    if (buffer->state == LIMEFS_BUFFER_FILLING && buffer->copies == 0 &&
        limefs_range_set_covers(&buffer->filled, buffer->from, buffer->to))
        submit_buffer(job, buffer);
    /* buffer_waiters excludes threads in get_empty_buffer(), which can use a FAILED buffer. */
    if (buffer->copies == 0 && (job->buffer_waiters || buffer->state == LIMEFS_BUFFER_FAILED))
        pthread_cond_broadcast(&job->changed);
}

/* Makes the job open the container for writing, and waits until it is open; first waits while
 * the job is closing it. Returns false if the job refuses, has no room or is lost. */
static bool wait_for_open(struct limefs_job *job, const struct limefs_snapshot *snap)
{
    struct limefs_job_file *file = NULL;
    while (is_serving(job) && (file = limefs_job_file_open(job, snap, true)) &&
           (limefs_job_file_is_opening(file) || limefs_job_file_is_closing(file)))
        limefs_cond_wait(&job->changed, &job->lock);
    return is_serving(job) && file && file->state == LIMEFS_JOB_FILE_OPEN;
}

/* Shrinks the range of a new buffer so that it does not overlap [from, to). The buffer has the
 * bytes of one write; if this write itself overlaps [from, to), does nothing. */
static void exclude_range(struct limefs_write_buffer *buffer, uint64_t from, uint64_t to)
{
    const struct limefs_byte_range *first = buffer->filled.range;
    if (to <= first->from && to > buffer->from)
        buffer->from = to;
    if (from >= first->to && from < buffer->to)
        buffer->to = from;
}

/* Shrinks the range of a new buffer so that it overlaps neither another buffer nor a range that
 * was written directly. With overlapping buffers, the order of the writes would be lost. Bytes
 * that were written directly do not come again, so the buffer would never become full. */
static void exclude_overlaps(struct limefs_job *job, struct limefs_write_buffer *buffer,
                             const struct limefs_write_stream *stream)
{
    const struct limefs_write_buffer *other = job->buffers;
    for (; other < job->buffers + job->buffer_count; other++)
        if (other != buffer && other->state != LIMEFS_BUFFER_EMPTY &&
            other->written == buffer->written)
            exclude_range(buffer, other->from, other->to);
    for (unsigned i = 0; i < stream->direct.count; i++)
        exclude_range(buffer, stream->direct.range[i].from, stream->direct.range[i].to);
}

static void note_direct_write(struct limefs_write_stream *stream, uint64_t from, uint64_t to)
{
    if (limefs_range_set_add(&stream->direct, from, to))
        return;
    stream->direct.count = 0; /* no room: forget older ranges, which the stream has passed */
    limefs_range_set_add(&stream->direct, from, to);
}

/* Copies the bytes into the buffer that covers them; false: no buffer overlaps them. First
 * waits for late writes of a lost job, and writes overlapping buffers that cannot take them. */
static bool add_to_buffer(struct limefs_job *job, struct limefs_written *written,
                          const char *buf, size_t n, uint64_t at)
{
    struct limefs_write_buffer *buffer;
    for (;;) {
        limefs_late_wait(job, written->snap->id, at, at + n);
        buffer = find_buffer(job, written, at, at + n);
        if (!buffer)
            return false;
        if (buffer->state == LIMEFS_BUFFER_FILLING && buffer->uid == limefs_creds_uid() &&
            buffer->from <= at && at + n <= buffer->to &&
            limefs_range_set_add(&buffer->filled, at, at + n)) {
            copy_to_buffer(job, buffer, buf, n, at);
            return true;
        }
        wait_until_written(job, buffer);
    }
}

/* Assigns an empty buffer to the extent with these bytes, and copies the bytes into it. */
static void start_buffer(struct limefs_job *job, struct limefs_write_buffer *buffer,
                         struct limefs_written *written,
                         const struct limefs_write_stream *stream, const char *buf, size_t n,
                         uint64_t at)
{
    /* Another thread may have restarted the stream in the meantime: begin may exceed `at`. */
    uint64_t extent = job->prefetch.extent, first = at / extent * extent;
    *buffer = (struct limefs_write_buffer){
        .state = LIMEFS_BUFFER_FILLING,
        .written = written,
        .uid = limefs_creds_uid(),
        .from = stream->begin > at      ? at
                : stream->begin > first ? stream->begin
                                        : first,
        .to = first + extent,
    };
    limefs_range_set_add(&buffer->filled, at, at + n);
    exclude_overlaps(job, buffer, stream);
    buffer->change = (struct limefs_change){
        .snap_id = written->snap->id, .from = buffer->from, .to = buffer->to};
    limefs_job_change_begin(job, &buffer->change);
    copy_to_buffer(job, buffer, buf, n, at);
}

/* Gathers n bytes of one extent; starts a buffer for them only if stream is not NULL. Returns
 * false if the caller must write them itself. The caller must do so before it waits for
 * anything else, because after a wait, another thread may have gathered bytes of the range. */
static bool gather_part(struct limefs_job *job, struct limefs_written *written,
                        const struct limefs_write_stream *stream, const char *buf, size_t n,
                        uint64_t at)
{
    while (!add_to_buffer(job, written, buf, n, at)) {
        struct limefs_write_buffer *buffer = NULL;
        if (stream && wait_for_open(job, written->snap) &&
            !find_buffer(job, written, at, at + n))
            buffer = get_empty_buffer(job);
        /* While this thread waited, another one may have started a buffer for the range. */
        if (find_buffer(job, written, at, at + n) ||
            limefs_late_possible(job, written->snap->id, at, at + n))
            continue;
        if (!buffer)
            return false;
        start_buffer(job, buffer, written, stream, buf, n, at);
        break;
    }
    return true;
}

int limefs_write_buffers_add(struct limefs *fs, struct limefs_written *written,
                             struct limefs_write_stream *stream, const char *buf, size_t n,
                             uint64_t at)
{
    struct limefs_job *job = fs->job;
    int err = 0;
    if (!job || job->buffer_count == 0)
        return 0;
    limefs_lock(&job->lock);
    bool is_long = extend_stream(job, stream, n, at) && is_serving(job);
    while (n && !err) {
        uint64_t room = job->prefetch.extent - at % job->prefetch.extent;
        size_t part = n < room ? n : (size_t)room;
        if (!gather_part(job, written, is_long ? stream : NULL, buf, part, at)) {
            note_direct_write(stream, at, at + part);
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

int limefs_write_buffers_flush(struct limefs *fs, struct limefs_written *written, uint64_t from,
                               uint64_t to)
{
    struct limefs_write_buffer *buffer;
    struct limefs_job *job = fs->job;
    if (!job || job->buffer_count == 0)
        return 0;
    limefs_lock(&job->lock);
    while ((buffer = find_buffer(job, written, from, to)))
        wait_until_written(job, buffer);
    int err = written->write_error;
    written->write_error = 0;
    limefs_unlock(&job->lock);
    return err;
}

/* ---- sync by the ranks ---- */

static bool is_connected_as(const struct limefs_job *job, uint64_t connection)
{
    return job->state == LIMEFS_JOB_SERVING && !job->broken && job->connections == connection;
}

static bool has_room_to_sync(const struct limefs_job *job)
{
    unsigned under_way = 0;
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        under_way += !sync->done;
    return under_way < SYNCS_MAX && job->in_flight < LIMEJOB_IN_FLIGHT_MAX;
}

static void remove_sync(struct limefs_job *job, const struct limefs_job_sync *sync)
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
    limejob_request_init(&packet, LIMEJOB_SYNC, limefs_job_tag(LIMEFS_TAG_SYNC, number));
    limejob_put_u32(&packet, file->number);
    limefs_job_send(job, &packet);
}

/* Makes all ranks sync. Waits for room for the request, and for the reply. Returns true, with
 * the reply's code in *code, or false if `connection` was lost first. */
static bool request_sync(struct limefs_job *job, struct limefs_job_file *file,
                         uint64_t connection, int *code)
{
    while (is_connected_as(job, connection) && !has_room_to_sync(job))
        limefs_cond_wait(&job->changed, &job->lock);
    if (!is_connected_as(job, connection))
        return false;
    struct limefs_job_sync sync = {.next = job->syncs,
                                   .snap_id = file->snap_id,
                                   .tag = ++job->sync_tag,
                                   .sent_at = limefs_clock_seconds()};
    /* cppcheck-suppress autoVariables ; remove_sync() removes it below */
    job->syncs = &sync;
    file->unsynced = false;
    send_sync(job, file, sync.tag);
    while (!sync.done && is_connected_as(job, connection))
        limefs_cond_wait(&job->changed, &job->lock);
    remove_sync(job, &sync);
    *code = sync.code;
    return sync.done;
}

/* Makes all ranks sync. While the job is busy, repeats the request after each other reply.
 * Returns 0 or a rank's -errno. Sets *unsynced if ranks on other hosts may not have synced. */
static int sync_ranks(struct limefs_job *job, struct limefs_job_file *file, bool *unsynced)
{
    uint64_t connection = job->connections;
    bool others = job->greeting.hosts > 1, done;
    int code = 0;
    file->syncs++; /* keeps the file open in the meantime */
    file->loads++;
    while ((done = request_sync(job, file, connection, &code)) && code == -EAGAIN &&
           is_connected_as(job, connection)) {
        file->unsynced = true;
        if (job->in_flight > 0)
            limefs_cond_wait(&job->changed, &job->lock);
    }
    if (is_connected_as(job, connection)) {
        file->syncs--;
        file->loads--;
    }
    /* A job that was lost before the retry, or is shutting down, has synced nothing. */
    done = done && code != -EAGAIN && code != -ESHUTDOWN;
    /* The caller's fsync() covers what ranks of this host have written. */
    *unsynced = *unsynced || (!done && others);
    return done ? code : 0;
}

int limefs_write_buffers_sync(struct limefs *fs, struct limefs_written *written)
{
    struct limefs_job *job = fs->job;
    int err = limefs_write_buffers_flush(fs, written, 0, UINT64_MAX);
    if (!job || job->buffer_count == 0)
        return err;
    limefs_lock(&job->lock);
    struct limefs_job_file *file = is_connected_as(job, job->connections)
                                       ? limefs_job_find_written_file(job, written->snap)
                                       : NULL;
    bool unsynced = false;
    int sync_error = 0;
    if (file && (file->unsynced || file->syncs))
        sync_error = sync_ranks(job, file, &unsynced);
    /* Consume the recorded error even if sync_ranks() failed, so that it is reported once. */
    unsynced = limefs_snapshot_consume_sync_error(fs, written->snap) || unsynced;
    if (unsynced)
        sync_error = -EIO;
    limefs_unlock(&job->lock);
    if (sync_error)
        limefs_log(LOG_ERR, "job: sync: %s",
                   unsynced ? "the job ended before ranks on other hosts had synced their data"
                            : strerror(-sync_error));
    return err ? err : sync_error;
}

int limefs_job_on_sync(struct limefs_job *job, unsigned number, struct limejob_packet *reply)
{
    int code = limejob_get_code(reply, NULL, 0);
    for (struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (sync->tag == number) {
            /* sync_ranks() retries after another reply. If none is due, the sync has failed. */
            sync->code = code == -EAGAIN && !limefs_job_is_busy(job, code) ? -EIO : code;
            sync->done = true;
            job->synced_from = sync->sent_at;
            job->synced_to = limefs_clock_seconds();
        }
    return 0;
}
