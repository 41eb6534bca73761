/* writer.c - lock, recover, open and close a container that is written to */
#define _GNU_SOURCE
#include "caller.h"
#include "descriptor.h"
#include "job.h"
#include "tree.h"
#include "writing.h"

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
    return limefs_tree_label(writer->fs, writer->snap->node, buf, cap);
}

int limefs_writer_folder(const struct limefs_writer *writer, const char **name)
{
    struct limefs *fs = writer->fs;
    const struct limefs_node *node = writer->snap->node;
    *name = fs->container ? fs->container : node->name;
    int dir = limefs_tree_parent(fs, node);
    if (dir < 0)
        return dir;
    int fd = limefile_reopen(dir, O_RDONLY | O_DIRECTORY);
    close(dir);
    return fd;
}

/* ---- errors and syncs ---- */

/* A failure concerns everything that was written before, through any target. */
static void set_target_errors(struct limefs_writer *writer, int err)
{
    for (struct limefs_target *target = writer->targets; target; target = target->next)
        target->error = err;
}

int limefs_writer_tell(struct limefs_writer *writer, int err)
{
    if (err) {
        limefs_last_fails(&writer->last, err, false);
        set_target_errors(writer, err);
    }
    return err;
}

int limefs_writer_flush_store(struct limefs_writer *writer)
{
    return limefs_writer_tell(writer,
                              limefs_store_flush(writer->fs, &writer->written, 0, UINT64_MAX));
}

int limefs_writer_sync_store(struct limefs_writer *writer)
{
    return limefs_writer_tell(writer, limefs_store_sync(writer->fs, &writer->written));
}

int limefs_writer_fsync(struct limefs_writer *writer)
{
    struct limefile_fd file;
    limefile_fd_init(&file, writer->written.fd);
    return limefs_writer_tell(writer, file.source.ops->sync(&file.source));
}

/* ---- the records ---- */

struct limefs_target *limefs_writer_target(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefs_target *target = writer->targets;
    while (target && target->ordinal != ordinal)
        target = target->next;
    return target;
}

bool limefs_writer_is_last(const struct limefs_writer *writer, uint64_t ordinal,
                           struct limefile_last *last)
{
    return limefile_editor_last(writer->editor, last) == 0 && last->ordinal == ordinal;
}

int limefs_writer_record(struct limefs_writer *writer, uint64_t ordinal,
                         struct limefile_record *record, struct limefile_index **index)
{
    *index = limefs_view_index(writer->fs, writer->snap);
    int err = limefile_index_get(*index, ordinal, record);
    if (err)
        limefile_index_free(*index);
    return err ? -ESTALE : 0;
}

void limefs_writer_take_last(struct limefs_writer *writer)
{
    struct limefile_last last;
    writer->last_bytes = limefile_editor_last(writer->editor, &last) == 0 ? last.bytes : 0;
    limefs_last_settles(&writer->last);
}

int limefs_writer_show_last(struct limefs_writer *writer)
{
    struct limefile_last last;
    struct limefile_record before, record;
    struct limefile_index *old = limefs_view_index(writer->fs, writer->snap), *index;
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
        limefs_view_show(writer->fs, writer->snap, index);
    limefile_index_free(old);
    return err;
}

int limefs_times_set(struct limefs *fs, struct limefs_view *snap,
                     const struct timespec times[2])
{
    int err = futimens(snap->fd, times) == 0 ? 0 : -errno;
    limefs_view_touched(fs, snap);
    return err;
}

/* ---- the index and the editor ---- */

int limefs_writer_reindex(struct limefs_writer *writer)
{
    struct limefile_index *index;
    int err = limefile_index_build(&writer->file.source, &index);
    if (err)
        return err;
    err = limefs_index_unread(index);
    if (!err)
        limefs_view_show(writer->fs, writer->snap, index);
    else
        limefile_index_free(index);
    return err;
}

static int reopen_editor(struct limefs_writer *writer)
{
    struct limefile_editor *editor;
    struct limefile_index *index = limefs_view_index(writer->fs, writer->snap);
    int err = limefile_editor_new(&writer->file.source, index, &editor);
    limefile_index_free(index);
    if (err)
        return err;
    limefile_editor_free(writer->editor);
    writer->editor = editor;
    limefs_writer_take_last(writer);
    return 0;
}

static uint64_t count_extra_bytes(const struct limefs_writer *writer, uint64_t size)
{
    uint64_t end;
    if (!writer->editor || limefs_last_is_growing(&writer->last) ||
        limefile_editor_end(writer->editor, &end) != 0)
        return 0; /* no writer, or its end is not settled */
    return size > end ? size - end : 0;
}

static uint64_t count_foreign(const struct limefs_writer *writer)
{
    struct stat st;
    return fstat(writer->written.fd, &st) ? 0 : count_extra_bytes(writer, (uint64_t)st.st_size);
}

int limefs_writer_catch_up(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    bool behind = limefs_container_is_behind(&writer->state);
    uint64_t foreign = behind ? 0 : count_foreign(writer);
    if (!behind && !foreign)
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
    struct limefile_last last;
    if (limefs_container_is_behind(&writer->state))
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

void limefs_writer_share_anew(struct limefs_writer *writer)
{
    limefs_leave(&writer->lock);
    limefs_take(&writer->lock);
    limefs_writer_catch_up(writer);
    limefs_leave(&writer->lock);
    limefs_share(&writer->lock);
}

int limefs_writer_share(struct limefs_writer *writer)
{
    limefs_share(&writer->lock);
    int err = limefs_writer_check(writer);
    if (!err || (!limefs_container_is_behind(&writer->state) && !count_foreign(writer)))
        return err;
    limefs_writer_share_anew(writer);
    return limefs_writer_check(writer);
}

/* ---- recovery after a crash ---- */

static void log_recovery(void *context, const char *text)
{
    char path[PATH_MAX];
    limefs_log(LOG_NOTICE, "%s: recover: %s", limefs_writer_label(context, path, sizeof path),
               text);
}

/* Copies the bytes and syncs the new file and its directory. */
static int copy_tail(const struct limefs_writer *writer, int dir, int fd, uint64_t from,
                     uint64_t size)
{
    struct limefile_copy copy = {
        .in = writer->written.fd, .in_offset = from, .out = fd, .left = size - from};
    int err = limefile_copy(&copy);
    return err ? err : fsync(fd) == 0 && fsync(dir) == 0 ? 0 : -errno;
}

/* Saves the tail next to the container, as `lime repair` does, with the daemon's rights. */
static int save_tail(void *context, uint64_t from, uint64_t size)
{
    struct limefs_writer *writer = context;
    char *name = NULL, path[PATH_MAX];
    const char *container;
    limefs_own_begin();
    int dir = limefs_writer_folder(writer, &container);
    int fd =
        dir < 0 ? dir : limefile_create_kept(dir, container, from, writer->written.fd, &name);
    limefs_own_end();
    if (dir < 0)
        return dir;
    int err = fd < 0 ? fd : copy_tail(writer, dir, fd, from, size);
    if (fd >= 0)
        close(fd);
    if (err && fd >= 0) {
        limefs_own_begin();
        unlinkat(dir, name, 0);
        limefs_own_end();
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

/* Retries for a short time: a previous mount may be about to end. */
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

/* Checks that the container did not change before it was locked, and still has its name. */
static int check_unchanged(const struct limefs_writer *writer)
{
    struct stat now, named, then = limefs_view_stat(writer->fs, writer->snap);
    if (fstat(writer->written.fd, &now) != 0)
        return -errno;
    int err = limefs_tree_stat(writer->fs, writer->snap->node, &named);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    struct limefile_identity is = limefile_identity_of(&now), was = limefile_identity_of(&then),
                             by_name = limefile_identity_of(&named);
    bool same = limefile_identity_same_data(&is, &was) &&
                limefile_identity_same_file(&is, &by_name) &&
                limefs_view_settle(writer->fs, writer->snap);
    return same ? 0 : -ESTALE;
}

static int open_for_writing(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    struct limefs_view *snap = writer->snap;
    if (limefs_container_is_left(&writer->state))
        return -ESTALE;
    limefs_own_begin(); /* for all users; the caller's permission was checked before */
    writer->written.fd = limefile_reopen(snap->fd, O_RDWR | O_NONBLOCK); /* a lease: -EAGAIN */
    limefs_own_end();
    if (writer->written.fd < 0)
        return writer->written.fd;
    init_source(writer);
    int err = lock_container(writer);
    if (!err)
        err = check_unchanged(writer);
    if (err)
        return err;
    limefs_view_set_written(fs, snap, true);
    struct limefile_index *index = limefs_view_index(fs, snap);
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
    limefs_view_set_written(writer->fs, writer->snap, false);
    limefs_container_closed(&writer->state);
    if (limefs_container_is_left(&writer->state))
        limefs_view_distrust(writer->fs, writer->snap);
    close(writer->written.fd);
    writer->written.fd = -1;
}

static struct limefs_writer *get_writer(struct limefs *fs, struct limefs_view *snap)
{
    limefs_lock(&fs->lock);
    struct limefs_writer *writer = snap->writer;
    if (!writer && (writer = calloc(1, sizeof *writer))) {
        writer->fs = fs;
        writer->snap = writer->written.snap = snap;
        writer->written.fd = -1;
        limefs_lock_init(&writer->open_lock, LIMEFS_LOCK_LIFE);
        limefs_lock_init(&writer->close_lock, LIMEFS_LOCK_PARTING);
        limefs_condition_init(&writer->target_closed);
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

static void free_snapshot_writer(struct limefs_view *snap)
{
    free_writer(snap->writer);
}

void limefs_writers_begin(struct limefs *fs)
{
    static const struct limefs_view_watch watch = {.freed = free_snapshot_writer};
    limefs_view_watch(fs, &watch);
}

void limefs_writer_give_up(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    struct limefs_view *snap = writer->snap;
    limefs_lock(&writer->open_lock);
    if (--writer->users == 0) {
        limefs_take(&writer->lock);
        close_for_writing(writer);
        limefs_leave(&writer->lock);
    }
    limefs_unlock(&writer->open_lock);
    limefs_view_unpin(fs, snap); /* may free the snapshot and its writer */
}

/* ---- hold the container while it is mounted ---- */

/* Releases a container that was replaced or absent for a while, if `snap` is current. */
static void release_previous_container(struct limefs *fs, struct limefs_view *snap)
{
    struct limefs_view *previous = NULL;
    limefs_lock(&fs->lock);
    if (fs->snapshots.held != snap && snap->node->container.view == snap) {
        previous = fs->snapshots.held;
        fs->snapshots.held = NULL;
    }
    limefs_unlock(&fs->lock);
    if (previous)
        limefs_writer_give_up(previous->writer);
}

/* Makes the mount a user, until it ends. */
static void add_mount_as_user(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    limefs_lock(&fs->lock);
    bool first = fs->container && !fs->snapshots.held &&
                 writer->snap->node->container.view == writer->snap;
    if (first)
        fs->snapshots.held = writer->snap;
    limefs_unlock(&fs->lock);
    if (!first)
        return;
    writer->users++;
    limefs_view_hold(fs, writer->snap);
}

void limefs_writer_let_go(struct limefs *fs)
{
    if (fs->snapshots.held)
        limefs_writer_give_up(fs->snapshots.held->writer);
    fs->snapshots.held = NULL;
}

int limefs_writer_use(struct limefs *fs, struct limefs_view *snap, struct limefs_writer **out)
{
    struct limefs_change change;
    int err = snap->guise ? -EROFS : limefs_caller_may(snap->fd, W_OK);
    if (err)
        return err;
    struct limefs_writer *writer = get_writer(fs, snap);
    if (!writer)
        return -ENOMEM;
    release_previous_container(fs, snap);
    limefs_lock(&writer->open_lock);
    if (writer->users == 0) {
        limefs_take(&writer->lock);
        limefs_job_change(fs, snap, &change, 0, UINT64_MAX, true);
        err = open_for_writing(writer);
        if (err)
            close_for_writing(writer);
        limefs_job_changed(fs, snap, &change);
        limefs_leave(&writer->lock);
    }
    if (!err) {
        writer->users++;
        limefs_view_hold(fs, snap);
        add_mount_as_user(writer);
    }
    limefs_unlock(&writer->open_lock);
    *out = writer;
    return err;
}

int limefs_writer_enter(struct limefs *fs, struct limefs_view *snap, struct limefs_writer **out)
{
    int err = limefs_writer_use(fs, snap, out);
    if (err)
        return err;
    limefs_take(&(*out)->lock);
    err = limefs_writer_catch_up(*out);
    if (!err)
        err = limefs_writer_check(*out);
    /* Ranks on other hosts must not write data later to a place that is no longer theirs. */
    if (!err)
        err = limefs_writer_sync_store(*out);
    if (err)
        limefs_writer_leave(*out);
    return err;
}

void limefs_writer_leave(struct limefs_writer *writer)
{
    limefs_job_touched(writer->fs, writer->snap);
    limefs_leave(&writer->lock);
    limefs_writer_give_up(writer);
}

int limefs_writer_hold(struct limefs *fs, struct limefs_view *snap)
{
    struct limefs_writer *writer;
    int err = limefs_writer_use(fs, snap, &writer);
    if (!err)
        limefs_writer_give_up(writer);
    return err;
}
