/* joblink.c - requests to a job and its replies */
#define _GNU_SOURCE
#include "joblink.h"
#include "descriptor.h"
#include "tree.h"
#include "writing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

enum {
    UNUSED_SECONDS = 10, /* then the job closes a container */
    REST_SECONDS = 5,    /* a container is not asked for after a read that failed */
};

/* A container that has just been changed, by this mount, may be so again, and then the job
 * would not find it as it is told. */
static const double quiet_seconds = 0.05, retry_seconds = 0.25;

/* What a reply is about. */
enum tag_kind {
    TAG_OPEN = 1, /* | index of the file */
    TAG_LOAD,     /* | slot */
    TAG_CLOSE,    /* | index of the file */
    TAG_STORE,    /* | parcel */
    TAG_SYNC,     /* | number of the sync */
    TAG_SUM,      /* | index of the file << 24 | number of the piece */
};

/* ---- requests ---- */

static uint64_t tag(enum tag_kind kind, unsigned index)
{
    return (uint64_t)kind << 32 | index;
}

static void send_packet(struct limefs_job *job, const struct limejob_packet *packet)
{
    job->in_flight++;
    if (!job->broken && limejob_send(&job->channel, packet, 0) != 0) {
        job->broken = true;
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

static void send_close(struct limefs_job *job, struct limefs_job_file *file)
{
    struct limejob_packet packet;
    limejob_request(&packet, LIMEJOB_CLOSE, tag(TAG_CLOSE, (unsigned)(file - job->files)));
    limejob_put_u32(&packet, file->number);
    file->state = LIMEFS_JOB_FILE_CLOSING;
    file->since = limefs_seconds();
    send_packet(job, &packet);
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

void limefs_job_send_sum(struct limefs_job *job, const struct limefs_job_sum *piece,
                         const struct limefs_job_file *file)
{
    struct limejob_packet packet;
    unsigned index = (unsigned)(file - job->files);
    limejob_request(&packet, LIMEJOB_SUM, tag(TAG_SUM, index << 24 | piece->tag));
    limejob_put_u32(&packet, file->number);
    limejob_put_u64(&packet, piece->offset);
    limejob_put_u64(&packet, piece->bytes);
    limejob_put_u64(&packet, piece->site_bytes);
    limejob_put_u64(&packet, piece->first);
    send_packet(job, &packet);
}

static struct limefs_writer *writer_of(const struct limefs_view *view)
{
    return __atomic_load_n(&view->writer, __ATOMIC_ACQUIRE);
}

/* Whether the container stands still, as far as it is this mount that changes it, and other
 * hosts can see it as it is. */
static bool is_quiet(const struct limefs_job *job, const struct limefs_view *view)
{
    const struct limefs_writer *writer = writer_of(view);
    if (!writer)
        return true;
    if (limefs_forward_is_changing(&job->forward, view->id) ||
        limefs_seconds() - writer->changed < quiet_seconds)
        return false;
    if (job->greeting.hosts < 2)
        return true;
    for (int i = 0; i < LIMEFS_JOB_FILES_MAX; i++)
        if (job->files[i].view == view->id && job->files[i].writes && job->files[i].unsynced)
            return false;
    return !writer->unsynced && !writer->syncing;
}

/* The container's path, and how much of it names what is mounted. False: it is too long. */
static bool name_of(const struct limefs_job *job, const struct limefs_view *view,
                    char path[LIMEJOB_PATH_MAX], size_t *root)
{
    char buf[PATH_MAX];
    const char *label = limefs_tree_label(job->fs, view->node, buf, sizeof buf);
    int n = view->node->parent
                ? snprintf(path, LIMEJOB_PATH_MAX, "%s/%s", job->fs->source, label)
                : snprintf(path, LIMEJOB_PATH_MAX, "%s", label);
    *root = view->node->parent ? strlen(job->fs->source) : limejob_folder_bytes(path);
    return n > 0 && n < LIMEJOB_PATH_MAX;
}

/* To write, the job gets another open file than the writer's: the lock goes with that one, and
 * must end when the writer closes it. */
static int descriptor_for(const struct limefs_view *view, bool writes)
{
    return writes ? limefile_reopen(writer_of(view)->fd, O_WRONLY) : view->fd;
}

/* What the job is to find: the container as it is, but with the data that the view shows. */
static int identity_of(const struct limefs_job *job, const struct limefs_view *view, int fd,
                       struct limejob_identity *identity)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (!writer_of(view)) {
        struct stat shown = limefs_view_stat(job->fs, view);
        st.st_size = shown.st_size;
        st.st_mtim = shown.st_mtim;
    }
    *identity = limejob_identity_of(&st);
    return 0;
}

static void send_descriptor(struct limefs_job *job, struct limefs_job_file *file,
                            const struct limefs_view *view, int fd)
{
    char path[LIMEJOB_PATH_MAX];
    size_t root;
    struct limejob_packet packet;
    if (!name_of(job, view, path, &root) || identity_of(job, view, fd, &file->identity) != 0)
        return;
    limejob_request(&packet, file->writes ? LIMEJOB_OPEN_WRITE : LIMEJOB_OPEN,
                    tag(TAG_OPEN, (unsigned)(file - job->files)));
    limejob_put_opening(&packet, &file->identity, path, root);
    packet.fd = fd;
    file->bytes = file->identity.bytes;
    file->state = LIMEFS_JOB_FILE_OPENING;
    send_packet(job, &packet);
}

static void send_open(struct limefs_job *job, struct limefs_job_file *file,
                      const struct limefs_view *view, bool writes)
{
    *file = (struct limefs_job_file){.state = LIMEFS_JOB_FILE_REFUSED,
                                     .view = view->id,
                                     .writes = writes,
                                     .since = limefs_seconds()};
    int fd = descriptor_for(view, writes);
    if (fd >= 0)
        send_descriptor(job, file, view, fd);
    if (fd >= 0 && writes)
        close(fd);
}

/* It was refused because it was changed meanwhile. */
static bool may_retry(const struct limefs_job_file *file)
{
    return file->state == LIMEFS_JOB_FILE_REFUSED && file->touched &&
           limefs_seconds() - file->since > retry_seconds;
}

static struct limefs_job_file *find_or_open(struct limefs_job *job,
                                            const struct limefs_view *view, bool writes)
{
    struct limefs_job_file *free_one = NULL, *idle = NULL;
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++) {
        if (file->state != LIMEFS_JOB_FILE_NONE && file->view == view->id &&
            file->writes == writes) {
            if (!may_retry(file))
                return file;
            *file = (struct limefs_job_file){0};
        }
        if (file->state == LIMEFS_JOB_FILE_NONE || file->state == LIMEFS_JOB_FILE_REFUSED) {
            if (!free_one || file->state == LIMEFS_JOB_FILE_NONE)
                free_one = file;
        } else if (file->state == LIMEFS_JOB_FILE_OPEN && file->loads == 0 && !file->unsynced &&
                   (!idle || file->since < idle->since)) {
            idle = file;
        }
    }
    if (job->in_flight >= LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX)
        return NULL; /* loads go first */
    if (!writes && !is_quiet(job, view))
        return NULL;
    if (free_one)
        send_open(job, free_one, view, writes);
    else if (idle)
        send_close(job, idle); /* there will be room the next time */
    return free_one;
}

struct limefs_job_file *limefs_job_file_of(struct limefs_job *job,
                                           const struct limefs_view *view)
{
    return find_or_open(job, view, false);
}

struct limefs_job_file *limefs_job_file_to_write(struct limefs_job *job,
                                                 const struct limefs_view *view)
{
    return find_or_open(job, view, true);
}

struct limefs_job_file *limefs_job_file_written(struct limefs_job *job,
                                                const struct limefs_view *view)
{
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (file->state == LIMEFS_JOB_FILE_OPEN && file->view == view->id && file->writes)
            return file;
    return NULL;
}

bool limefs_job_file_has(struct limefs_job *job, struct limefs_job_file *file,
                         const struct limefs_view *view, uint64_t from, uint64_t to)
{
    if (file->state != LIMEFS_JOB_FILE_OPEN)
        return false;
    if (to <= file->bytes && (from >= file->changed_to || file->changed_from >= to))
        return true;
    if (file->loads == 0 && is_quiet(job, view))
        send_close(job, file);
    return false;
}

void limefs_job_file_moved(struct limefs_job *job, const struct limefs_view *view)
{
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++) {
        if (file->view != view->id || !file->writes)
            continue;
        if (file->state == LIMEFS_JOB_FILE_OPEN)
            send_close(job, file);
        else if (file->state == LIMEFS_JOB_FILE_OPENING)
            file->moved = true; /* which file it gets is not known before the reply */
        else if (file->state == LIMEFS_JOB_FILE_REFUSED)
            *file = (struct limefs_job_file){0}; /* perhaps as it was the other one */
    }
}

/* ---- replies ---- */

static struct limefs_job_file *file_of_view(struct limefs_job *job, uint64_t view)
{
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (file->view == view && !file->writes &&
            (file->state == LIMEFS_JOB_FILE_OPEN || file->state == LIMEFS_JOB_FILE_CLOSING))
            return file;
    return NULL;
}

/* The view's descriptor once more, to be closed; -1 if nobody uses the view any more. */
static int descriptor_of(struct limefs *fs, uint64_t id)
{
    pthread_mutex_lock(&fs->lock);
    const struct limefs_view *view = fs->newest;
    while (view && view->id != id)
        view = view->older;
    int fd = view ? fcntl(view->fd, F_DUPFD_CLOEXEC, 3) : -1;
    pthread_mutex_unlock(&fs->lock);
    return fd;
}

/* The container is still what it was when the job was asked to open it. So ranks that have
 * found the same by name, on another host, have found the same container: nobody can give a
 * second file the first one's ctime. */
static bool is_agreed(const struct limefs_job *job, const struct limefs_job_file *file)
{
    struct stat st;
    int fd = descriptor_of(job->fs, file->view);
    bool known = fd >= 0 && fstat(fd, &st) == 0;
    if (fd >= 0)
        close(fd);
    if (!known)
        return false;
    struct limejob_identity now = limejob_identity_of(&st);
    if (file->writes)
        return now.device == file->identity.device && now.inode == file->identity.inode;
    return limejob_identity_compare(&now, &file->identity, 0, NULL, 0) == 0;
}

static int on_opened(struct limefs_job *job, struct limefs_job_file *file,
                     struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    if (file->state != LIMEFS_JOB_FILE_OPENING)
        return -EPROTO;
    int err = limejob_get_code(reply, text, sizeof text);
    file->number = err ? 0 : limejob_get_u32(reply);
    bool again = err == -EAGAIN || file->moved; /* to be asked for */
    file->state = !err    ? LIMEFS_JOB_FILE_OPEN
                  : again ? LIMEFS_JOB_FILE_NONE
                          : LIMEFS_JOB_FILE_REFUSED;
    if (file->state == LIMEFS_JOB_FILE_REFUSED && !(err == -ESTALE && file->touched))
        limefs_log(LOG_WARNING, "job: open: %s; this container is %s locally",
                   text[0] ? text : strerror(-err), file->writes ? "written" : "read");
    file->refuted =
        file->state == LIMEFS_JOB_FILE_OPEN && !file->moved && !is_agreed(job, file);
    if (file->state == LIMEFS_JOB_FILE_OPEN && (file->moved || file->refuted))
        send_close(job, file);
    return reply->broken ? -EPROTO : 0;
}

/* One that was not what was asked for is asked for again, after a while. */
static void on_closed(struct limefs_job_file *file)
{
    struct limefs_job_file closed = {0};
    if (file->refuted)
        closed = (struct limefs_job_file){.state = LIMEFS_JOB_FILE_REFUSED,
                                          .view = file->view,
                                          .writes = file->writes,
                                          .touched = true,
                                          .since = limefs_seconds()};
    *file = closed;
}

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
    struct limefs_job_file *file = file_of_view(job, extent->view);
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
    struct limefs_job_file *file = limefs_job_file_written(job, parcel->writer->view);
    if (file && file->loads)
        file->loads--;
    limefs_store_on_written(job, parcel, err);
    return 0;
}

static int on_synced(struct limefs_job *job, unsigned number, struct limejob_packet *reply)
{
    for (struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (sync->tag == number) {
            sync->code = limejob_get_code(reply, NULL, 0);
            sync->done = true;
        }
    return 0;
}

/* Who asked may have gone. ENOSYS: the job is older than SUM. */
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
    if (code && code != -ENOSYS && code != -EAGAIN)
        limefs_log(LOG_WARNING, "job: sum: %s; it is taken locally",
                   text[0] ? text : strerror(-code));
    for (struct limefs_job_sum *piece = job->sums; piece; piece = piece->next)
        if (piece->tag == (number & LIMEFS_SUM_TAGS) && !piece->done) {
            piece->code = code;
            piece->sum = sum;
            piece->done = true;
        }
    return 0;
}

int limefs_job_on_reply(struct limefs_job *job, struct limejob_packet *reply)
{
    unsigned index = (unsigned)(reply->tag & UINT32_MAX);
    if (reply->fd >= 0)
        close(reply->fd);
    if (!(reply->flags & LIMEJOB_REPLY) || job->in_flight == 0)
        return -EPROTO;
    job->in_flight--;
    switch (reply->tag >> 32) {
    case TAG_OPEN:
        return index < LIMEFS_JOB_FILES_MAX ? on_opened(job, &job->files[index], reply)
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
        if (index >= LIMEFS_JOB_FILES_MAX || job->files[index].state != LIMEFS_JOB_FILE_CLOSING)
            return -EPROTO;
        on_closed(&job->files[index]);
        return 0;
    default:
        return -EPROTO;
    }
}

/* ---- from time to time ---- */

/* A disk that reads less than 50 MB/s for all ranks together is no better than none. */
static double limit_of(const struct limefs_job *job)
{
    return job->fs->options.job_timeout + (double)job->forward.extent / 50e6;
}

double limefs_job_lease(const struct limefs_job *job)
{
    return 4 * limit_of(job);
}

/* Something has not been answered for too long: nothing else either, or it alone for very long.
 */
bool limefs_job_is_stalled(const struct limefs_job *job, double now)
{
    double limit = limit_of(job);
    double heard = now - job->heard, oldest = 0;
    for (unsigned i = 0; i < job->forward.slots; i++)
        if (job->forward.slot[i].state == LIMEFS_EXTENT_LOADING && now - job->asked[i] > oldest)
            oldest = now - job->asked[i];
    for (int i = 0; i < LIMEFS_JOB_FILES_MAX; i++)
        if ((job->files[i].state == LIMEFS_JOB_FILE_OPENING ||
             job->files[i].state == LIMEFS_JOB_FILE_CLOSING) &&
            now - job->files[i].since > oldest)
            oldest = now - job->files[i].since;
    for (unsigned i = 0; i < job->parcel_count; i++)
        if (job->parcels[i].state == LIMEFS_PARCEL_SENT && now - job->parcels[i].since > oldest)
            oldest = now - job->parcels[i].since;
    for (const struct limefs_job_sum *piece = job->sums; piece; piece = piece->next)
        if (!piece->done && now - piece->since > oldest)
            oldest = now - piece->since;
    for (const struct limefs_job_sync *sync = job->syncs; sync; sync = sync->next)
        if (heard > 12 * limit) /* a disk may take its time, but not without a word */
            return true;
    return (oldest > limit && heard > limit) || oldest > limefs_job_lease(job);
}

void limefs_job_tidy_files(struct limefs_job *job, double now)
{
    if (now - job->tidied < 1)
        return;
    job->tidied = now;
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (now - file->since <= UNUSED_SECONDS)
            continue;
        else if (file->state == LIMEFS_JOB_FILE_OPEN && file->loads == 0 && !file->unsynced)
            send_close(job, file);
        else if (file->state == LIMEFS_JOB_FILE_REFUSED)
            *file = (struct limefs_job_file){0};
}
