/* link.c - requests to a job and its replies */
#define _GNU_SOURCE
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

enum {
    REST_SECONDS = 5, /* a container is not asked for after a read that failed */
    PIECE_TAGS = (1 << 24) - 1,
};

/* What a reply is about. */
enum tag_kind {
    TAG_OPEN = 1, /* | index of the file */
    TAG_LOAD,     /* | slot */
    TAG_CLOSE,    /* | index of the file */
    TAG_STORE,    /* | parcel */
    TAG_SYNC,     /* | number of the sync */
    TAG_SUM,      /* | index of the file << 24 | number of the piece */
};

/* ---- its end ---- */

static bool is_being_synced(const struct limefs_job *job, uint64_t view)
{
    const struct limefs_job_sync *sync = job->syncs;
    while (sync && (sync->view != view || sync->done))
        sync = sync->next;
    return sync != NULL;
}

/* What ranks of this host have written is in this host's page cache; of others nobody knows. */
static void note_what_is_lost(struct limefs_job *job)
{
    for (const struct limefs_job_file *file = job->files;
         file < job->files + LIMEFS_JOB_FILES_MAX && job->greeting.hosts > 1; file++)
        if (file->writes && (file->unsynced || is_being_synced(job, file->view)))
            limefs_view_lose(job->fs, file->view);
}

void limefs_job_break(struct limefs_job *job)
{
    if (job->broken)
        return;
    job->broken = true;
    note_what_is_lost(job); /* before anybody syncs it in vain: the rest may take seconds */
}

/* ---- requests ---- */

static uint64_t tag(enum tag_kind kind, unsigned index)
{
    return (uint64_t)kind << 32 | index;
}

static void send_packet(struct limefs_job *job, const struct limejob_packet *packet)
{
    job->in_flight++;
    if (!job->broken && limejob_send(&job->channel, packet, 0) != 0) {
        limefs_job_break(job);
        shutdown(job->channel.fd, SHUT_RDWR); /* wakes the thread */
    }
}

void limefs_job_send_load(struct limefs_job *job, int slot, struct limefs_job_file *file)
{
    const struct limefs_extent *extent = &job->forward.slot[slot];
    struct limejob_packet packet;
    limejob_request(&packet, LIMEJOB_READ, tag(TAG_LOAD, (unsigned)slot));
    limejob_put_u32(&packet, file->number);
    limejob_put_u64(&packet, extent->from);
    limejob_put_u64(&packet, extent->to - extent->from);
    limejob_put_u64(&packet, (uint64_t)slot * job->forward.extent);
    job->asked[slot] = limefs_seconds();
    file->loads++;
    send_packet(job, &packet);
}

void limefs_job_send_open(struct limefs_job *job, struct limefs_job_file *file,
                          struct limejob_packet *packet)
{
    packet->tag = tag(TAG_OPEN, (unsigned)(file - job->files));
    file->state = LIMEFS_JOB_FILE_OPENING;
    file->asked = true;
    file->since = limefs_seconds(); /* to look at the container may have taken a while */
    send_packet(job, packet);
}

void limefs_job_send_close(struct limefs_job *job, struct limefs_job_file *file)
{
    struct limejob_packet packet;
    file->state = LIMEFS_JOB_FILE_CLOSING;
    file->asked = job->in_flight < LIMEJOB_IN_FLIGHT_MAX; /* else it would be refused */
    if (!file->asked)
        return;
    limejob_request(&packet, LIMEJOB_CLOSE, tag(TAG_CLOSE, (unsigned)(file - job->files)));
    limejob_put_u32(&packet, file->number);
    file->since = limefs_seconds();
    send_packet(job, &packet);
}

void limefs_job_send_closes(struct limefs_job *job)
{
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (file->state == LIMEFS_JOB_FILE_CLOSING && !file->asked)
            limefs_job_send_close(job, file);
}

uint64_t limefs_job_gate(const struct limefs_job *job)
{
    return job->forward.extent * (job->forward.slots + job->parcel_count);
}

void limefs_job_send_store(struct limefs_job *job, unsigned parcel,
                           const struct limefs_job_file *file, uint64_t offset, uint64_t bytes)
{
    struct limejob_packet packet;
    struct timespec now;
    uint64_t slot = job->forward.slots + parcel;
    limejob_request(&packet, LIMEJOB_WRITE, tag(TAG_STORE, parcel));
    limejob_put_u32(&packet, file->number);
    limejob_put_u64(&packet, offset);
    limejob_put_u64(&packet, bytes);
    limejob_put_u64(&packet, slot * job->forward.extent + offset % job->forward.extent);
    limejob_put_u64(&packet, limefs_job_gate(job));
    clock_gettime(CLOCK_REALTIME, &now);
    limejob_put_u64(&packet, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec +
                                 (uint64_t)(limefs_job_lease(job) * 1e9));
    limejob_put_u32(&packet, job->parcels[parcel].uid);
    send_packet(job, &packet);
}

void limefs_job_send_sync(struct limefs_job *job, const struct limefs_job_file *file,
                          uint32_t number)
{
    struct limejob_packet packet;
    limejob_request(&packet, LIMEJOB_SYNC, tag(TAG_SYNC, number));
    limejob_put_u32(&packet, file->number);
    send_packet(job, &packet);
}

void limefs_job_send_sum(struct limefs_job *job, struct limefs_piece *piece,
                         const struct limefs_job_file *file)
{
    struct limejob_packet packet;
    unsigned index = (unsigned)(file - job->files);
    piece->tag = tag(TAG_SUM, index << 24 | (++job->piece_tag & PIECE_TAGS));
    limejob_request(&packet, LIMEJOB_SUM, piece->tag);
    limejob_put_u32(&packet, file->number);
    limejob_put_u64(&packet, piece->offset);
    limejob_put_u64(&packet, piece->bytes);
    limejob_put_u64(&packet, piece->site_bytes);
    limejob_put_u64(&packet, piece->first);
    send_packet(job, &packet);
}

/* ---- replies ---- */

/* Not again and again what has just failed; one line for all that fails now. */
static void rest(struct limefs_job_file *file, const char *why)
{
    double now = limefs_seconds();
    if (!file || now < file->rests)
        return;
    file->rests = now + REST_SECONDS;
    limefs_log(LOG_WARNING, "job: read: %s; this container is read locally for %d s", why,
               REST_SECONDS);
}

static int on_loaded(struct limefs_job *job, unsigned slot, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (slot >= job->forward.slots || job->forward.slot[slot].state != LIMEFS_EXTENT_LOADING)
        return -EPROTO;
    const struct limefs_extent *extent = &job->forward.slot[slot];
    int err = limejob_get_code(reply, text, sizeof text);
    if (!err && limejob_get_u64(reply) != extent->to - extent->from)
        return -EPROTO;
    struct limefs_job_file *file = limefs_job_file_loading(job, extent->view);
    if (file)
        file->loads--;
    if (err) { /* the local read will say what is wrong, if it meets it too */
        job->failed_loads++;
        if (err != -EAGAIN)
            rest(file, text[0] ? text : strerror(-err));
    }
    limefs_forward_loaded(&job->forward, (int)slot, !err, limefs_seconds());
    return 0;
}

static int on_stored(struct limefs_job *job, unsigned index, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (index >= job->parcel_count || job->parcels[index].state != LIMEFS_PARCEL_SENT)
        return -EPROTO;
    struct limefs_parcel *parcel = &job->parcels[index];
    int err = limejob_get_code(reply, text, sizeof text);
    if (!err && limejob_get_u64(reply) != parcel->to - parcel->from)
        return -EPROTO;
    if (err)
        limefs_log(LOG_WARNING, "job: write: %s; it is written locally",
                   text[0] ? text : strerror(-err));
    struct limefs_job_file *file = limefs_job_file_written(job, parcel->written->view);
    if (file && file->loads)
        file->loads--;
    limefs_store_on_written(job, parcel, err);
    return 0;
}

/* The job has too much to do, and will answer to something else, too: ask once more then. */
static bool has_too_much(const struct limefs_job *job, int code)
{
    return code == -EAGAIN && job->in_flight > 0;
}

static int on_synced(struct limefs_job *job, unsigned number, struct limejob_packet *reply)
{
    int code = limejob_get_code(reply, NULL, 0);
    for (struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (sync->tag == number) {
            /* Nobody else is told to try again, who has written something. */
            sync->code = code == -EAGAIN && !has_too_much(job, code) ? -EIO : code;
            sync->done = true;
            job->synced_from = sync->since;
            job->synced_to = limefs_seconds();
        }
    return 0;
}

/* The piece that a reply is about; NULL: whoever asked has gone. */
static struct limefs_piece *find_piece(const struct limefs_job *job, uint64_t reply_tag)
{
    struct limefs_piece *piece = job->pieces;
    while (piece && (piece->tag != reply_tag || piece->done))
        piece = piece->next;
    return piece;
}

static int on_summed(struct limefs_job *job, unsigned number, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    struct limefs_job_file *file = &job->files[number >> 24 & (LIMEFS_JOB_FILES_MAX - 1)];
    struct limefile_checksum sum = {0};
    int code = limejob_get_code(reply, text, sizeof text);
    if (!code) {
        sum.suma = limejob_get_u32(reply);
        sum.sumb = limejob_get_u32(reply);
    }
    if (reply->broken || file->loads == 0)
        return -EPROTO;
    file->loads--;
    if (code && code != -EAGAIN)
        limefs_log(LOG_WARNING, "job: sum: %s; it is taken locally",
                   text[0] ? text : strerror(-code));
    struct limefs_piece *piece = find_piece(job, reply->tag);
    if (piece) {
        piece->code = code;
        piece->done = true;
        piece->sum = sum;
    }
    return 0;
}

static int on_closed(struct limefs_job *job, unsigned index, struct limejob_packet *reply)
{
    if (index >= LIMEFS_JOB_FILES_MAX)
        return -EPROTO;
    struct limefs_job_file *file = &job->files[index];
    if (file->state != LIMEFS_JOB_FILE_CLOSING || !file->asked)
        return -EPROTO;
    if (has_too_much(job, limejob_get_code(reply, NULL, 0)))
        file->asked = false; /* it is still open */
    else
        limefs_job_file_closed(file);
    return 0;
}

static int on_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    unsigned index = (unsigned)(reply->tag & UINT32_MAX);
    switch (reply->tag >> 32) {
    case TAG_OPEN:
        return index < LIMEFS_JOB_FILES_MAX
                   ? limefs_job_file_opened(job, &job->files[index], reply)
                   : -EPROTO;
    case TAG_LOAD:
        return on_loaded(job, index, reply);
    case TAG_STORE:
        return on_stored(job, index, reply);
    case TAG_SYNC:
        return on_synced(job, index, reply);
    case TAG_SUM:
        return on_summed(job, index, reply);
    case TAG_CLOSE:
        return on_closed(job, index, reply);
    default:
        return -EPROTO;
    }
}

int limefs_job_on_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    if (!(reply->flags & LIMEJOB_REPLY) || job->in_flight == 0)
        return -EPROTO;
    job->in_flight--;
    bool closes = reply->tag >> 32 == TAG_CLOSE; /* which may be refused again and again */
    int err = on_reply(job, reply);
    if (!err && !closes)
        limefs_job_send_closes(job);
    return err;
}
