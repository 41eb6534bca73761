/* job_files.c - send requests to a job, and make the job open and close containers. Static
 * functions are called with job->lock held, except prepare_open() and those it calls. */
#define _GNU_SOURCE
#include "job_internal.h"
#include "credentials.h"
#include "descriptor.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

enum { UNUSED_FILE_SECONDS = 10 }; /* a file that was not used for this time is closed */

/* The job refuses an open request if the container changed after the request was sent. A
 * container that this mount has just changed will often change again, so it is opened for
 * reading only quiet_seconds later. A refused request may be sent again after retry_seconds. */
static const double quiet_seconds = 0.05, retry_seconds = 0.25;

static bool is_being_synced(const struct limefs_job *job, uint64_t snap_id)
{
    const struct limefs_job_sync *sync = job->syncs;
    while (sync && (sync->snap_id != snap_id || sync->done))
        sync = sync->next;
    return sync != NULL;
}

/* Records a sync error for each container of which ranks on other hosts may have unsynced data.
 * (Data of ranks on this host is in this host's page cache, so a later fsync() includes it.) */
static void report_unsynced_files(struct limefs_job *job)
{
    for (const struct limefs_job_file *file = job->files;
         file < job->files + LIMEFS_JOB_FILES_MAX && job->greeting.hosts > 1; file++)
        if (file->writes && (file->unsynced || is_being_synced(job, file->snap_id)))
            limefs_snapshot_record_sync_error(job->fs, file->snap_id);
}

void limefs_job_mark_broken(struct limefs_job *job)
{
    if (job->broken)
        return;
    job->broken = true;
    /* Report them now: a sync before the thread has disconnected must not return success. */
    report_unsynced_files(job);
}

void limefs_job_send(struct limefs_job *job, const struct limejob_packet *packet)
{
    job->in_flight++;
    if (!job->broken && limejob_send(&job->channel, packet, 0) != 0) {
        limefs_job_mark_broken(job);
        shutdown(job->channel.fd, SHUT_RDWR); /* wakes the connection's thread */
    }
}

uint64_t limefs_job_fence_offset(const struct limefs_job *job)
{
    return job->prefetch.extent * (job->prefetch.slots + job->buffer_count);
}

/* ---- open and close containers ---- */

/* Sends a request to close the file. If there is no room, limefs_job_send_closes() sends it. */
static void send_close(struct limefs_job *job, struct limefs_job_file *file)
{
    struct limejob_packet packet;
    file->state = LIMEFS_JOB_FILE_TO_CLOSE;
    if (job->in_flight >= LIMEJOB_IN_FLIGHT_MAX) /* the job would refuse the request */
        return;
    file->state = LIMEFS_JOB_FILE_CLOSING;
    limejob_request_init(&packet, LIMEJOB_CLOSE,
                         limefs_job_tag(LIMEFS_TAG_CLOSE, (unsigned)(file - job->files)));
    limejob_put_u32(&packet, file->number);
    file->last_used = limefs_clock_seconds();
    limefs_job_send(job, &packet);
}

void limefs_job_send_closes(struct limefs_job *job)
{
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (file->state == LIMEFS_JOB_FILE_TO_CLOSE)
            send_close(job, file);
}

/* Returns true if this mount has not just changed the container, and all hosts see it alike. */
static bool is_stable(const struct limefs_job *job, const struct limefs_snapshot *snap)
{
    const struct limefs_written *written = snap->job;
    if (!written)
        return true;
    if (limefs_prefetch_is_changing(&job->prefetch, snap->id) ||
        limefs_clock_seconds() - written->changed < quiet_seconds)
        return false;
    if (job->greeting.hosts < 2)
        return true;
    for (int i = 0; i < LIMEFS_JOB_FILES_MAX; i++)
        if (job->files[i].snap_id == snap->id && job->files[i].writes && job->files[i].unsynced)
            return false;
    return !written->unsynced && !written->syncing;
}

bool limefs_job_container_path(struct limefs *fs, const struct limefs_snapshot *snap,
                               char *path, size_t cap, size_t *root)
{
    char buf[PATH_MAX];
    const char *label = limefs_tree_display_path(fs, snap->node, buf, sizeof buf);
    int n = snap->node->parent ? snprintf(path, cap, "%s/%s", fs->source, label)
                               : snprintf(path, cap, "%s", label);
    *root = snap->node->parent ? strlen(fs->source) : limejob_directory_bytes(path);
    return n > 0 && (size_t)n < cap;
}

/* Returns the descriptor to pass to the job: for reading, the snapshot's; for writing, that of
 * a new open file, which the caller closes. (With a duplicate of the writer's descriptor, the
 * job would keep the writer's file lock.) The writer has checked that the user may write. */
static int get_fd_for_job(const struct limefs_snapshot *snap, bool writes)
{
    if (!writes)
        return snap->fd;
    limefs_daemon_creds_enter();
    int fd = limefile_reopen(snap->job->fd, O_WRONLY);
    limefs_daemon_creds_leave();
    return fd;
}

/* Gets the identity that the container must have when the job opens it: that of fd. But if the
 * snapshot has no writer, the size and mtime are the snapshot's. */
static int get_file_identity(const struct limefs_job *job, const struct limefs_snapshot *snap,
                             int fd, struct limefile_identity *identity)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (!snap->job) {
        struct stat snap_st = limefs_snapshot_stat(job->fs, snap);
        st.st_size = snap_st.st_size;
        st.st_mtim = snap_st.st_mtim;
    }
    *identity = limefile_identify(&st);
    return 0;
}

/* An open request, prepared without the job's lock. */
struct open_request {
    int fd;
    char path[LIMEJOB_PATH_MAX];
    size_t root;
    struct limefile_identity identity;
};

static int prepare_open(const struct limefs_job *job, const struct limefs_snapshot *snap,
                        bool writes, struct open_request *request)
{
    request->fd = get_fd_for_job(snap, writes);
    if (request->fd < 0)
        return request->fd;
    if (!limefs_job_container_path(job->fs, snap, request->path, LIMEJOB_PATH_MAX,
                                   &request->root))
        return -ENAMETOOLONG;
    return get_file_identity(job, snap, request->fd, &request->identity);
}

static void send_open(struct limefs_job *job, struct limefs_job_file *file,
                      const struct open_request *request)
{
    struct limejob_packet packet;
    limejob_request_init(&packet, file->writes ? LIMEJOB_OPEN_WRITE : LIMEJOB_OPEN,
                         limefs_job_tag(LIMEFS_TAG_OPEN, (unsigned)(file - job->files)));
    limejob_put_open_request(&packet, &request->identity, request->path, request->root);
    packet.fd = request->fd;
    file->identity = request->identity;
    file->bytes = (uint64_t)file->identity.size;
    file->state = LIMEFS_JOB_FILE_OPENING;
    file->last_used = limefs_clock_seconds(); /* prepare_open() may have taken a while */
    limefs_job_send(job, &packet);
}

static bool is_connected(const struct limefs_job *job, uint64_t connection)
{
    return job->connections == connection && job->state == LIMEFS_JOB_SERVING;
}

/* Sends a request to open a container. Releases the lock while it examines the container, which
 * may take time; during this time, other threads find the file in state PREPARING. Returns NULL
 * if the job was lost, or the container was replaced and the caller must try again. */
static struct limefs_job_file *request_open(struct limefs_job *job,
                                            struct limefs_job_file *file,
                                            const struct limefs_snapshot *snap, bool writes)
{
    struct open_request request;
    uint64_t connection = job->connections;
    *file = (struct limefs_job_file){.state = LIMEFS_JOB_FILE_PREPARING,
                                     .snap_id = snap->id,
                                     .writes = writes,
                                     .last_used = limefs_clock_seconds()};
    limefs_unlock(&job->lock);
    int err = prepare_open(job, snap, writes, &request);
    limefs_lock(&job->lock);
    bool connected = is_connected(job, connection);
    bool replaced = connected && file->replaced;
    if (replaced)
        *file = (struct limefs_job_file){0};
    else if (connected && err)
        file->state = LIMEFS_JOB_FILE_REFUSED;
    else if (connected)
        send_open(job, file, &request);
    if (replaced || err)
        pthread_cond_broadcast(&job->changed);
    if (request.fd >= 0 && writes) {
        limefs_unlock(&job->lock);
        close(request.fd);
        limefs_lock(&job->lock);
        connected = connected && is_connected(job, connection);
    }
    return connected && !replaced ? file : NULL;
}

/* True if an open request was refused, but the container has changed since the request was
 * sent, and retry_seconds have passed. */
static bool may_retry_open(const struct limefs_job_file *file)
{
    return file->state == LIMEFS_JOB_FILE_REFUSED && file->changed &&
           limefs_clock_seconds() - file->last_used > retry_seconds;
}

struct limefs_job_file *limefs_job_file_open(struct limefs_job *job,
                                             const struct limefs_snapshot *snap, bool writes)
{
    struct limefs_job_file *free_file = NULL, *idle = NULL;
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++) {
        if (file->state != LIMEFS_JOB_FILE_NONE && file->snap_id == snap->id &&
            file->writes == writes) {
            if (!may_retry_open(file))
                return file;
            *file = (struct limefs_job_file){0};
        }
        if (file->state == LIMEFS_JOB_FILE_NONE || file->state == LIMEFS_JOB_FILE_REFUSED) {
            if (!free_file || file->state == LIMEFS_JOB_FILE_NONE)
                free_file = file;
        } else if (file->state == LIMEFS_JOB_FILE_OPEN && file->loads == 0 && !file->unsynced &&
                   (!idle || file->last_used < idle->last_used)) {
            idle = file;
        }
    }
    if (job->in_flight >= LIMEJOB_IN_FLIGHT_MAX - LIMEFS_SLOTS_MAX)
        return NULL; /* the rest is reserved for loads */
    if (!writes && !is_stable(job, snap))
        return NULL;
    if (free_file)
        return request_open(job, free_file, snap, writes);
    if (idle)
        send_close(job, idle); /* a later call can use its entry */
    return NULL;
}

struct limefs_job_file *limefs_job_find_written_file(struct limefs_job *job,
                                                     const struct limefs_snapshot *snap)
{
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (file->state == LIMEFS_JOB_FILE_OPEN && file->snap_id == snap->id && file->writes)
            return file;
    return NULL;
}

bool limefs_job_file_is_current(struct limefs_job *job, struct limefs_job_file *file,
                                const struct limefs_snapshot *snap, uint64_t from, uint64_t to)
{
    if (file->state != LIMEFS_JOB_FILE_OPEN)
        return false;
    if (to <= file->bytes && (from >= file->changed_to || file->changed_from >= to))
        return true;
    if (file->loads == 0 && is_stable(job, snap))
        send_close(job, file);
    return false;
}

void limefs_job_container_replaced(struct limefs *fs, const struct limefs_snapshot *snap)
{
    struct limefs_job *job = fs->job;
    if (!job)
        return;
    limefs_lock(&job->lock);
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++) {
        if (file->snap_id != snap->id || !file->writes)
            continue;
        if (file->state == LIMEFS_JOB_FILE_OPEN)
            send_close(job, file);
        else if (limefs_job_file_is_opening(file))
            file->replaced = true; /* the job may be opening the old file: open it again */
        else if (file->state == LIMEFS_JOB_FILE_REFUSED)
            *file = (struct limefs_job_file){0}; /* the refusal may concern the old file */
    }
    limefs_unlock(&job->lock);
}

/* ---- replies ---- */

/* Duplicates a snapshot's descriptor, without job->lock. -1: the snapshot is not open. */
static int duplicate_fd(struct limefs *fs, uint64_t id)
{
    limefs_lock(&fs->lock);
    const struct limefs_snapshot *snap = fs->snapshots.newest;
    while (snap && snap->id != id)
        snap = snap->older;
    int fd = snap ? fcntl(snap->fd, F_DUPFD_CLOEXEC, 3) : -1;
    limefs_unlock(&fs->lock);
    return fd;
}

/* Returns true if the container still has the identity in the open request. If so, ranks on
 * other hosts have opened the same file: they compared the identity, and no program can give
 * another file the same ctime. Releases the lock in between; the state stays OPENING, because
 * only the calling thread, which handles replies, ends it. */
static bool is_same_container(struct limefs_job *job, const struct limefs_job_file *file)
{
    struct stat st;
    limefs_unlock(&job->lock);
    int fd = duplicate_fd(job->fs, file->snap_id);
    bool known = fd >= 0 && fstat(fd, &st) == 0;
    if (fd >= 0)
        close(fd);
    limefs_lock(&job->lock);
    if (!known)
        return false;
    struct limefile_identity now = limefile_identify(&st);
    if (file->writes)
        return limefile_identity_same_file(&now, &file->identity);
    return limejob_identity_compare(&now, &file->identity, 0, NULL, 0) == 0;
}

int limefs_job_on_open(struct limefs_job *job, unsigned index, struct limejob_packet *reply)
{
    char text[LIMEJOB_TEXT_MAX];
    struct limefs_job_file *file = job->files + index;
    if (index >= LIMEFS_JOB_FILES_MAX || file->state != LIMEFS_JOB_FILE_OPENING)
        return -EPROTO;
    int err = limejob_get_code(reply, text, sizeof text);
    file->number = err ? 0 : limejob_get_u32(reply);
    file->writes_collectively = !err && file->writes && limejob_get_u32(reply);
    if (!err && !file->replaced)
        file->is_wrong_file = !is_same_container(job, file);
    bool retry = err == -EAGAIN || file->replaced; /* a later read or write requests it again */
    file->state = !err    ? LIMEFS_JOB_FILE_OPEN
                  : retry ? LIMEFS_JOB_FILE_NONE
                          : LIMEFS_JOB_FILE_REFUSED;
    if (file->state == LIMEFS_JOB_FILE_REFUSED && !(err == -ESTALE && file->changed))
        limefs_log(LOG_WARNING, "job: open: %s; this container is %s locally",
                   text[0] ? text : strerror(-err), file->writes ? "written" : "read");
    if (file->state == LIMEFS_JOB_FILE_OPEN && (file->replaced || file->is_wrong_file))
        send_close(job, file);
    return reply->broken ? -EPROTO : 0;
}

/* Frees a closed file. If the job had opened a wrong file, marks it as REFUSED and changed, so
 * that the open request is retried (may_retry_open()). */
static void reset_file(struct limefs_job_file *file)
{
    struct limefs_job_file closed = {0};
    if (file->is_wrong_file)
        closed = (struct limefs_job_file){.state = LIMEFS_JOB_FILE_REFUSED,
                                          .snap_id = file->snap_id,
                                          .writes = file->writes,
                                          .changed = true,
                                          .last_used = limefs_clock_seconds()};
    *file = closed;
}

bool limefs_job_is_busy(const struct limefs_job *job, int code)
{
    return code == -EAGAIN && job->in_flight > 0;
}

int limefs_job_on_close(struct limefs_job *job, unsigned index, struct limejob_packet *reply)
{
    if (index >= LIMEFS_JOB_FILES_MAX)
        return -EPROTO;
    struct limefs_job_file *file = &job->files[index];
    if (file->state != LIMEFS_JOB_FILE_CLOSING)
        return -EPROTO;
    if (limefs_job_is_busy(job, limejob_get_code(reply, NULL, 0)))
        file->state = LIMEFS_JOB_FILE_TO_CLOSE;
    else
        reset_file(file);
    return 0;
}

struct limefs_job_file *limefs_job_find_read_file(struct limefs_job *job, uint64_t snap_id)
{
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (file->snap_id == snap_id && !file->writes &&
            (file->state == LIMEFS_JOB_FILE_OPEN || limefs_job_file_is_closing(file)))
            return file;
    return NULL;
}

void limefs_job_close_unused_files(struct limefs_job *job, double now)
{
    if (now - job->last_cleanup < 1)
        return;
    job->last_cleanup = now;
    limefs_job_send_closes(job);
    for (struct limefs_job_file *file = job->files; file < job->files + LIMEFS_JOB_FILES_MAX;
         file++)
        if (now - file->last_used <= UNUSED_FILE_SECONDS)
            continue;
        else if (file->state == LIMEFS_JOB_FILE_OPEN && file->loads == 0 && !file->unsynced)
            send_close(job, file);
        else if (file->state == LIMEFS_JOB_FILE_REFUSED)
            *file = (struct limefs_job_file){0};
}
