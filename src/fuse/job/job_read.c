/* job_read.c - serve reads through the job. Static functions are called with job->lock held. */
#include "job_internal.h"

#include <errno.h>
#include <string.h>
#include <syslog.h>

enum {
    PAUSE_SECONDS = 5, /* after a load has failed, no loads from the container for this time */
};

struct limefs_read_req limefs_read_req_for(const struct limefs_read_range *range)
{
    return (struct limefs_read_req){.snap_id = range->snap->id,
                                    .begin = range->begin,
                                    .end = range->end,
                                    .at = range->at,
                                    .n = range->n,
                                    .now = limefs_clock_seconds()};
}

/* Returns true if no record was moved or resized since range->layout was stored. */
static bool has_same_layout(const struct limefs_read_range *range)
{
    const struct limefs_written *written = range->snap->job;
    return !written || written->layout == range->layout;
}

/* Returns true if one more reader may wait, so that some threads remain for other requests. */
static bool may_block(const struct limefs_job *job)
{
    return job->waiting_readers + 4 < job->fs->threads;
}

/* Waits for a reply of the job. If none comes, the connection's thread wakes this one. */
static void wait_for_change(struct limefs_job *job)
{
    job->waiting_readers++;
    limefs_cond_wait(&job->changed, &job->lock);
    job->waiting_readers--;
}

/* Waits until the request's slots are ready, and returns their number. Returns 0 if the bytes
 * are not in slots (any more), or if the request would have to wait but must not. */
static int wait_for_slots(struct limefs_job *job, const struct limefs_read_req *req,
                          bool is_stream, int *slots)
{
    bool ready, waited = false;
    for (;;) {
        int count = job->state == LIMEFS_JOB_SERVING
                        ? limefs_prefetch_find(&job->prefetch, req, slots, &ready)
                        : 0;
        if (count == 0)
            return 0;
        if (ready) {
            job->prefetch.stats.hits += !waited;
            return count;
        }
        if (!is_stream || !may_block(job))
            return 0;
        if (!waited)
            limefs_prefetch_note_wait(&job->prefetch, req);
        waited = true;
        wait_for_change(job);
    }
}

static void send_load(struct limefs_job *job, int slot, struct limefs_job_file *file)
{
    const struct limefs_extent *extent = &job->prefetch.slot[slot];
    struct limejob_packet packet;
    limejob_request_init(&packet, LIMEJOB_READ,
                         limefs_job_tag(LIMEFS_TAG_LOAD, (unsigned)slot));
    limejob_put_u32(&packet, file->number);
    limejob_put_u64(&packet, extent->from);
    limejob_put_u64(&packet, extent->to - extent->from);
    limejob_put_u64(&packet, (uint64_t)slot * job->prefetch.extent);
    job->load_sent[slot] = limefs_clock_seconds();
    file->loads++;
    limefs_job_send(job, &packet);
}

/* Makes the job open the container, for which this may wait, and load the bytes that the
 * request's stream will read next. Returns true if the request is part of a stream. */
static bool request_loads(struct limefs_job *job, const struct limefs_read_req *req,
                          const struct limefs_snapshot *snap)
{
    int loads[LIMEFS_SLOTS_MAX];
    bool is_stream;
    struct limefs_job_file *file = limefs_job_file_open(job, snap, false);
    if (file && limefs_job_file_is_opening(file)) {
        limefs_prefetch_plan(&job->prefetch, req, 0, loads, &is_stream);
        if (!limefs_prefetch_is_stream(&job->prefetch, req))
            return is_stream;
        while (job->state == LIMEFS_JOB_SERVING && may_block(job) &&
               limefs_job_file_is_opening(file)) /* an open takes little time */
            wait_for_change(job);
        if (job->state != LIMEFS_JOB_SERVING || file->snap_id != snap->id || file->writes)
            return is_stream;
    }
    bool may_load = file && req->now >= file->paused_until &&
                    limefs_job_file_is_current(job, file, snap, req->begin, req->end);
    int max_loads = may_load ? LIMEJOB_IN_FLIGHT_MAX - (int)job->in_flight : 0;
    int count = limefs_prefetch_plan(&job->prefetch, req, max_loads, loads, &is_stream);
    for (int i = 0; i < count; i++)
        send_load(job, loads[i], file);
    if (may_load)
        file->last_used = req->now;
    return is_stream;
}

int limefs_job_read(struct limefs *fs, const struct limefs_read_range *range,
                    struct limefs_chunks *chunks)
{
    struct limefs_job *job = fs->job;
    int slots[LIMEFS_CHUNKS_MAX];
    chunks->count = 0;
    if (!job || range->n == 0 || range->end - range->begin < fs->options.forward_from)
        return 0;
    struct limefs_read_req req = limefs_read_req_for(range);
    limefs_lock(&job->lock);
    if (job->state == LIMEFS_JOB_SERVING && !job->broken && has_same_layout(range)) {
        bool is_stream = request_loads(job, &req, range->snap);
        int count = wait_for_slots(job, &req, is_stream, slots);
        if (count && has_same_layout(range)) {
            limefs_prefetch_hold(&job->prefetch, &req, slots, count, job->window.data,
                                 job->prefetch.extent, chunks);
            job->holds++;
            job->forwarded_bytes += req.n;
        }
    }
    limefs_unlock(&job->lock);
    return chunks->count;
}

/* Pauses loads from a file after a load has failed. Logs only the first failure of a pause. */
static void pause_loads(struct limefs_job_file *file, const char *reason)
{
    double now = limefs_clock_seconds();
    if (!file || now < file->paused_until)
        return;
    file->paused_until = now + PAUSE_SECONDS;
    limefs_log(LOG_WARNING, "job: read: %s; this container is read locally for %d s", reason,
               PAUSE_SECONDS);
}

int limefs_job_on_load(struct limefs_job *job, unsigned slot, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (slot >= job->prefetch.slots || job->prefetch.slot[slot].state != LIMEFS_EXTENT_LOADING)
        return -EPROTO;
    const struct limefs_extent *extent = &job->prefetch.slot[slot];
    int err = limejob_get_code(reply, text, sizeof text);
    if (!err && limejob_get_u64(reply) != extent->to - extent->from)
        return -EPROTO;
    struct limefs_job_file *file = limefs_job_find_read_file(job, extent->snap_id);
    if (file)
        file->loads--;
    if (err) { /* the reader will read locally, and thereby get any error of the storage */
        job->failed_loads++;
        if (err != -EAGAIN)
            pause_loads(file, text[0] ? text : strerror(-err));
    }
    limefs_prefetch_end_load(&job->prefetch, (int)slot, !err, limefs_clock_seconds());
    return 0;
}

void limefs_job_release(struct limefs *fs, struct limefs_chunks *chunks)
{
    struct limefs_job *job = fs->job;
    if (chunks->count == 0)
        return;
    limefs_lock(&job->lock);
    limefs_prefetch_release(&job->prefetch, chunks);
    if (--job->holds == 0 && job->state != LIMEFS_JOB_SERVING)
        pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
}

void limefs_job_invalidate(struct limefs *fs, const struct limefs_snapshot *snap)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    limefs_lock(&job->lock);
    limefs_prefetch_invalidate(&job->prefetch, snap->id);
    pthread_cond_broadcast(&job->changed);
    limefs_unlock(&job->lock);
}

bool limefs_job_is_stale(struct limefs *fs, const struct limefs_chunks *chunks)
{
    struct limefs_job *job = fs->job;
    if (!job || chunks->count == 0)
        return false;
    limefs_lock(&job->lock);
    bool stale = limefs_prefetch_is_stale(&job->prefetch, chunks);
    limefs_unlock(&job->lock);
    return stale;
}
