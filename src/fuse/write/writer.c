/* writer.c - lock, recover, open and close a container that is written to */
#define _GNU_SOURCE
#include "credentials.h"
#include "descriptor.h"
#include "job.h"
#include "tree.h"
#include "writer_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum {
    LOCK_TIMEOUT_MS = 2000,
    LOCK_RETRY_MS = 20,
};

const char *limefs_writer_label(const struct limefs_writer *writer, char *buf, size_t cap)
{
    return limefs_tree_display_path(writer->fs, writer->snap->node, buf, cap);
}

int limefs_writer_directory(const struct limefs_writer *writer, const char **name)
{
    struct limefs *fs = writer->fs;
    const struct limefs_node *node = writer->snap->node;
    *name = fs->container ? fs->container : node->name;
    int dir = limefs_tree_open_parent(fs, node);
    if (dir < 0)
        return dir;
    int fd = limefile_reopen(dir, O_RDONLY | O_DIRECTORY);
    close(dir);
    return fd;
}

/* ---- errors and syncs ---- */

/* The failed data may come from any target, so all targets get the error. */
static void set_target_errors(struct limefs_writer *writer, int err)
{
    for (struct limefs_target *target = writer->targets; target; target = target->next)
        target->error = err;
}

int limefs_writer_report_error(struct limefs_writer *writer, int err)
{
    if (err) {
        limefs_last_fail(&writer->last, err, false);
        set_target_errors(writer, err);
    }
    return err;
}

int limefs_writer_flush_buffers(struct limefs_writer *writer)
{
    return limefs_writer_report_error(
        writer, limefs_write_buffers_flush(writer->fs, &writer->written, 0, UINT64_MAX));
}

int limefs_writer_sync_ranks(struct limefs_writer *writer)
{
    return limefs_writer_report_error(writer,
                                      limefs_write_buffers_sync(writer->fs, &writer->written));
}

int limefs_writer_fsync(struct limefs_writer *writer)
{
    struct limefile_fd file;
    limefile_fd_init(&file, writer->written.fd);
    return limefs_writer_report_error(writer, file.source.ops->sync(&file.source));
}

/* ---- the records ---- */

struct limefs_target *limefs_writer_find_target(const struct limefs_writer *writer,
                                                uint64_t ordinal)
{
    struct limefs_target *target = writer->targets;
    while (target && target->ordinal != ordinal)
        target = target->next;
    return target;
}

bool limefs_writer_is_last(const struct limefs_writer *writer, uint64_t ordinal,
                           struct limefile_last_record *last)
{
    return limefile_editor_last(writer->editor, last) == 0 && last->ordinal == ordinal;
}

int limefs_writer_get_record(struct limefs_writer *writer, uint64_t ordinal,
                             struct limefile_record *record, struct limefile_index **index)
{
    *index = limefs_snapshot_index(writer->fs, writer->snap);
    int err = limefile_index_get(*index, ordinal, record);
    if (err)
        limefile_index_free(*index);
    return err ? -ESTALE : 0;
}

void limefs_writer_reset_last(struct limefs_writer *writer)
{
    struct limefile_last_record last;
    writer->last_bytes = limefile_editor_last(writer->editor, &last) == 0 ? last.bytes : 0;
    limefs_last_reset(&writer->last);
}

int limefs_writer_publish_last(struct limefs_writer *writer)
{
    struct limefile_last_record last;
    struct limefile_record before, record;
    struct limefile_index *old = limefs_snapshot_index(writer->fs, writer->snap), *index;
    int err = limefile_editor_last(writer->editor, &last);
    if (!err) {
        bool first = limefile_index_get(old, last.ordinal - 1, &before) != 0;
        record = (struct limefile_record){
            .ordinal = last.ordinal,
            .message = first ? 1 : before.message + last.mb,
            .record = first || last.mb ? 1 : before.record + 1,
            .header_offset = last.header_offset,
            .data_offset = last.data_offset,
            .bytes = last.bytes,
            .padding = (uint8_t)limefile_padding(last.bytes),
            .mb = last.mb,
            .me = true,
            .type_len = last.type_len,
            .type = last.type,
        };
        err = limefile_index_with(old, &record, &index);
    }
    if (!err)
        limefs_snapshot_replace_index(writer->fs, writer->snap, index);
    limefile_index_free(old);
    return err;
}

int limefs_set_times(struct limefs *fs, struct limefs_snapshot *snap,
                     const struct timespec times[2])
{
    int err = futimens(snap->fd, times) == 0 ? 0 : -errno;
    limefs_snapshot_refresh_stat(fs, snap);
    return err;
}

/* ---- the index and the editor ---- */

int limefs_writer_reindex(struct limefs_writer *writer)
{
    struct limefile_index *index;
    int err = limefile_index_build(&writer->file.source, &index);
    if (err)
        return err;
    err = limefs_index_read_error(index);
    if (!err)
        limefs_snapshot_replace_index(writer->fs, writer->snap, index);
    else
        limefile_index_free(index);
    return err;
}

static int reopen_editor(struct limefs_writer *writer)
{
    struct limefile_editor *editor;
    struct limefile_index *index = limefs_snapshot_index(writer->fs, writer->snap);
    int err = limefile_editor_new(&writer->file.source, index, &editor);
    limefile_index_free(index);
    if (err)
        return err;
    limefile_editor_free(writer->editor);
    writer->editor = editor;
    limefs_writer_reset_last(writer);
    return 0;
}

/* Returns how many bytes another program has appended. size: the container's current size. */
static uint64_t count_extra_bytes(const struct limefs_writer *writer, uint64_t size)
{
    uint64_t end;
    if (!writer->editor || limefs_last_is_growing(&writer->last) ||
        limefile_editor_end(writer->editor, &end) != 0)
        return 0; /* the end is not known */
    return size > end ? size - end : 0;
}

static uint64_t foreign_bytes(const struct limefs_writer *writer)
{
    struct stat st;
    return fstat(writer->written.fd, &st) ? 0 : count_extra_bytes(writer, (uint64_t)st.st_size);
}

int limefs_writer_refresh(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    bool is_unindexed = limefs_container_is_unindexed(&writer->state);
    uint64_t foreign = is_unindexed ? 0 : foreign_bytes(writer);
    if (!is_unindexed && !foreign)
        return 0;
    int err = limefs_writer_reindex(writer);
    if (!err)
        err = reopen_editor(writer);
    if (!err)
        limefs_container_opened(&writer->state);
    if (foreign)
        limefs_log(err ? LOG_ERR : LOG_WARNING,
                   "%s: write: another program has appended %llu bytes%s",
                   limefs_writer_label(writer, path, sizeof path), (unsigned long long)foreign,
                   err ? " that are not (yet) complete records; until they are, or until the "
                         "container is mounted again, all writes fail"
                       : ", which the mount shows now; only one program should write to it");
    return err && foreign ? -ESTALE : err;
}

int limefs_writer_check(struct limefs_writer *writer)
{
    struct stat st;
    char path[PATH_MAX];
    struct limefile_last_record last;
    if (limefs_container_is_unindexed(&writer->state))
        return -EIO;
    if (fstat(writer->written.fd, &st) != 0)
        return -errno;
    bool removed = st.st_nlink == 0;
    bool cut = limefile_editor_last(writer->editor, &last) == 0 &&
               (uint64_t)st.st_size < last.data_offset + last.bytes;
    if (!removed && !cut)
        return count_extra_bytes(writer, (uint64_t)st.st_size) ? -ESTALE : 0;
    limefs_log(LOG_ERR, "%s: write: %s", limefs_writer_label(writer, path, sizeof path),
               removed ? "the container was removed or replaced"
                       : "another program has truncated the container");
    return -ESTALE;
}

void limefs_writer_relock_shared(struct limefs_writer *writer)
{
    limefs_rwlock_unlock(&writer->lock);
    limefs_lock_exclusive(&writer->lock);
    limefs_writer_refresh(writer);
    limefs_rwlock_unlock(&writer->lock);
    limefs_lock_shared(&writer->lock);
}

int limefs_writer_lock_shared(struct limefs_writer *writer)
{
    limefs_lock_shared(&writer->lock);
    int err = limefs_writer_check(writer);
    if (!err || (!limefs_container_is_unindexed(&writer->state) && !foreign_bytes(writer)))
        return err;
    limefs_writer_relock_shared(writer);
    return limefs_writer_check(writer);
}

/* ---- recovery after a crash ---- */

static void log_recovery(void *context, const char *text)
{
    char path[PATH_MAX];
    limefs_log(LOG_NOTICE, "%s: recover: %s", limefs_writer_label(context, path, sizeof path),
               text);
}

/* Copies bytes [from, size) of the container to the new file fd, and syncs it and `dir`. */
static int copy_tail(const struct limefs_writer *writer, int dir, int fd, uint64_t from,
                     uint64_t size)
{
    struct limefile_copy copy = {
        .in = writer->written.fd, .in_offset = from, .out = fd, .left = size - from};
    int err = limefile_copy(&copy);
    return err ? err : fsync(fd) == 0 && fsync(dir) == 0 ? 0 : -errno;
}

/* Saves the bytes behind the last record in a new file in the container's directory, as `lime
 * repair` does. */
static int save_tail(void *context, uint64_t from, uint64_t size)
{
    struct limefs_writer *writer = context;
    char *name = NULL, path[PATH_MAX];
    const char *container;
    limefs_daemon_creds_enter();
    int dir = limefs_writer_directory(writer, &container);
    int fd = dir < 0
                 ? dir
                 : limefile_create_cut_file(dir, container, from, writer->written.fd, &name);
    limefs_daemon_creds_leave();
    if (dir < 0)
        return dir;
    int err = fd < 0 ? fd : copy_tail(writer, dir, fd, from, size);
    if (fd >= 0)
        close(fd);
    if (err && fd >= 0) {
        limefs_daemon_creds_enter();
        unlinkat(dir, name, 0);
        limefs_daemon_creds_leave();
    }
    close(dir);
    limefs_log(err ? LOG_ERR : LOG_NOTICE, "%s: recover: %s %s%s%s",
               limefs_writer_label(writer, path, sizeof path),
               err ? "cannot save the bytes behind the last record in" : "they are saved in",
               name ? name : container, err ? ": " : "", err ? limefile_strerror(err) : "");
    free(name);
    return err;
}

static int recover_container(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    int err = limefile_recover(&writer->file.source, log_recovery, save_tail, writer);
    if (!err)
        return 0;
    if (err == LIMEFILE_E_FLAGS || err == LIMEFILE_E_MIXED) {
        limefs_log(LOG_ERR, "%s: write: %s; nothing was changed, see 'lime repair -n'",
                   limefs_writer_label(writer, path, sizeof path), limefile_strerror(err));
        return -EROFS;
    }
    limefs_log(LOG_ERR, "%s: write: %s; see 'lime check', repair it with 'lime repair'",
               limefs_writer_label(writer, path, sizeof path), limefile_strerror(err));
    return err == -ENOSPC || err == -EDQUOT ? err : -EIO;
}

/* ---- open and close ---- */

/* Retries for a short time, in which a previous mount may end and release its lock. */
static int lock_with_retries(int fd)
{
    const struct timespec pause = {0, LOCK_RETRY_MS * 1000000L};
    int err = limefile_lock(fd);
    for (int i = 0; err == -EBUSY && i < LOCK_TIMEOUT_MS / LOCK_RETRY_MS; i++) {
        nanosleep(&pause, NULL);
        err = limefile_lock(fd);
    }
    return err;
}

/* Returns 0 or -EBUSY. If the file system cannot lock files, only logs a warning. */
static int lock_container(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    const char *label = limefs_writer_label(writer, path, sizeof path);
    int err = lock_with_retries(writer->written.fd);
    if (err == -EBUSY)
        limefs_log(LOG_ERR,
                   "%s: lock: another process has this container open for writing, a "
                   "read-write mount perhaps; unmount it first",
                   label);
    else if (err)
        limefs_log(LOG_WARNING, "%s: lock: %s; make sure that no other program writes to it",
                   label, limefile_strerror(err));
    return err == -EBUSY ? err : 0;
}

static int sync_source(struct limefile_source *source)
{
    return limefs_writer_fsync(
        (struct limefs_writer *)((char *)source - offsetof(struct limefs_writer, file.source)));
}

static void init_source(struct limefs_writer *writer)
{
    limefile_fd_init(&writer->file, writer->written.fd);
    writer->ops = *writer->file.source.ops;
    writer->ops.sync = sync_source;
    writer->file.source.ops = &writer->ops;
}

/* Returns -ESTALE if the container is not as indexed, or if its name leads to another file. */
static int check_unchanged(const struct limefs_writer *writer)
{
    struct stat now, named, then = limefs_snapshot_stat(writer->fs, writer->snap);
    if (fstat(writer->written.fd, &now) != 0)
        return -errno;
    int err = limefs_tree_stat(writer->fs, writer->snap->node, &named);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    struct limefile_identity is = limefile_identify(&now), was = limefile_identify(&then),
                             by_name = limefile_identify(&named);
    bool same = limefile_identity_same_data(&is, &was) &&
                limefile_identity_same_file(&is, &by_name) &&
                limefs_snapshot_revalidate(writer->fs, writer->snap);
    return same ? 0 : -ESTALE;
}

/* Called for the first user. After an error, the caller must call close_for_writing(). */
static int open_for_writing(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    struct limefs_snapshot *snap = writer->snap;
    if (limefs_container_is_abandoned(&writer->state))
        return -ESTALE;
    limefs_daemon_creds_enter(); /* all users share the descriptor; permission was checked */
    /* O_NONBLOCK: if another process holds a lease, the open fails at once with -EAGAIN. */
    writer->written.fd = limefile_reopen(snap->fd, O_RDWR | O_NONBLOCK);
    limefs_daemon_creds_leave();
    if (writer->written.fd < 0)
        return writer->written.fd;
    init_source(writer);
    int err = lock_container(writer);
    if (!err)
        err = check_unchanged(writer);
    if (err)
        return err;
    limefs_snapshot_set_written(fs, snap, true);
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    bool good = !limefile_index_fault(index) && !limefile_index_deviations(index);
    limefile_index_free(index);
    if (!good) {
        err = recover_container(writer);
        if (!err)
            err = limefs_writer_reindex(writer);
    }
    if (!err)
        err = reopen_editor(writer);
    if (!err)
        limefs_container_opened(&writer->state);
    return err;
}

static void close_for_writing(struct limefs_writer *writer)
{
    if (writer->written.fd < 0)
        return;
    limefile_editor_free(writer->editor);
    writer->editor = NULL;
    limefs_snapshot_set_written(writer->fs, writer->snap, false);
    limefs_container_closed(&writer->state);
    if (limefs_container_is_abandoned(&writer->state))
        limefs_snapshot_invalidate(writer->fs, writer->snap);
    close(writer->written.fd);
    writer->written.fd = -1;
}

static struct limefs_writer *ensure_writer(struct limefs *fs, struct limefs_snapshot *snap)
{
    limefs_lock(&fs->lock);
    struct limefs_writer *writer = snap->writer;
    if (!writer && (writer = calloc(1, sizeof *writer))) {
        writer->fs = fs;
        writer->snap = writer->written.snap = snap;
        writer->written.fd = -1;
        limefs_lock_init(&writer->open_lock, LIMEFS_LOCK_WRITER_USERS);
        limefs_lock_init(&writer->close_lock, LIMEFS_LOCK_CLOSE);
        limefs_cond_init(&writer->target_closed);
        limefs_rwlock_init(&writer->lock, LIMEFS_LOCK_WRITER);
        snap->job = &writer->written;
        snap->writer = writer;
    }
    limefs_unlock(&fs->lock);
    return writer;
}

static void free_writer(struct limefs_writer *writer)
{
    if (!writer)
        return;
    limefile_editor_free(writer->editor);
    if (writer->written.fd >= 0)
        close(writer->written.fd);
    pthread_cond_destroy(&writer->target_closed);
    limefs_lock_destroy(&writer->close_lock);
    limefs_lock_destroy(&writer->open_lock);
    limefs_rwlock_destroy(&writer->lock);
    free(writer);
}

static void free_snapshot_writer(struct limefs_snapshot *snap)
{
    free_writer(snap->writer);
}

void limefs_writers_init(struct limefs *fs)
{
    static const struct limefs_snapshot_watch watch = {.freed = free_snapshot_writer};
    limefs_snapshot_add_watch(fs, &watch);
}

void limefs_writer_put(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    struct limefs_snapshot *snap = writer->snap;
    limefs_lock(&writer->open_lock);
    if (--writer->users == 0) {
        limefs_lock_exclusive(&writer->lock);
        close_for_writing(writer);
        limefs_rwlock_unlock(&writer->lock);
    }
    limefs_unlock(&writer->open_lock);
    limefs_snapshot_unpin(fs, snap); /* may free the snapshot and its writer */
}

/* ---- hold the container while it is mounted ---- */

/* If `snap` is current and the mount holds an older snapshot's writer, releases the latter. */
static void release_previous_container(struct limefs *fs, struct limefs_snapshot *snap)
{
    struct limefs_snapshot *previous = NULL;
    limefs_lock(&fs->lock);
    if (fs->snapshots.mount_snap != snap && snap->node->container.snap == snap) {
        previous = fs->snapshots.mount_snap;
        fs->snapshots.mount_snap = NULL;
    }
    limefs_unlock(&fs->lock);
    if (previous)
        limefs_writer_put(previous->writer);
}

/* Makes the mount of a single container a user, to keep it locked until the unmount. */
static void add_mount_as_user(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    limefs_lock(&fs->lock);
    bool first = fs->container && !fs->snapshots.mount_snap &&
                 writer->snap->node->container.snap == writer->snap;
    if (first)
        fs->snapshots.mount_snap = writer->snap;
    limefs_unlock(&fs->lock);
    if (!first)
        return;
    writer->users++;
    limefs_snapshot_add_pin(fs, writer->snap);
}

void limefs_writer_release_for_mount(struct limefs *fs)
{
    if (fs->snapshots.mount_snap)
        limefs_writer_put(fs->snapshots.mount_snap->writer);
    fs->snapshots.mount_snap = NULL;
}

int limefs_writer_get(struct limefs *fs, struct limefs_snapshot *snap,
                      struct limefs_writer **out)
{
    struct limefs_change change;
    int err = snap->adapter ? -EROFS : limefs_creds_check_access(snap->fd, W_OK);
    if (err)
        return err;
    struct limefs_writer *writer = ensure_writer(fs, snap);
    if (!writer)
        return -ENOMEM;
    release_previous_container(fs, snap);
    limefs_lock(&writer->open_lock);
    if (writer->users == 0) {
        limefs_lock_exclusive(&writer->lock);
        limefs_change_begin(fs, snap, &change, 0, UINT64_MAX, true);
        err = open_for_writing(writer);
        if (err)
            close_for_writing(writer);
        limefs_change_end(fs, snap, &change);
        limefs_rwlock_unlock(&writer->lock);
    }
    if (!err) {
        writer->users++;
        limefs_snapshot_add_pin(fs, snap);
        add_mount_as_user(writer);
    }
    limefs_unlock(&writer->open_lock);
    *out = writer;
    return err;
}

int limefs_writer_lock(struct limefs *fs, struct limefs_snapshot *snap,
                       struct limefs_writer **out)
{
    int err = limefs_writer_get(fs, snap, out);
    if (err)
        return err;
    limefs_lock_exclusive(&(*out)->lock);
    err = limefs_writer_refresh(*out);
    if (!err)
        err = limefs_writer_check(*out);
    /* The caller may move records, so ranks must not write later to the records' old places. */
    if (!err)
        err = limefs_writer_sync_ranks(*out);
    if (err)
        limefs_writer_unlock(*out);
    return err;
}

void limefs_writer_unlock(struct limefs_writer *writer)
{
    limefs_change_note(writer->fs, writer->snap);
    limefs_rwlock_unlock(&writer->lock);
    limefs_writer_put(writer);
}

int limefs_writer_hold_for_mount(struct limefs *fs, struct limefs_snapshot *snap)
{
    struct limefs_writer *writer;
    int err = limefs_writer_get(fs, snap, &writer);
    if (!err)
        limefs_writer_put(writer);
    return err;
}
