/* writer.c - containers locked, made good and opened for writing, and closed again */
#define _GNU_SOURCE
#include "caller.h"
#include "descriptor.h"
#include "job.h"
#include "store.h"
#include "tree.h"
#include "writing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 2000,
    PAUSE_MS = 20,
};

const char *limefs_writer_label(const struct limefs_writer *writer, char *buf, size_t cap)
{
    return limefs_tree_label(writer->fs, writer->view->node, buf, cap);
}

int limefs_writer_folder(const struct limefs_writer *writer, const char **name)
{
    struct limefs *fs = writer->fs;
    const struct limefs_node *node = writer->view->node;
    *name = fs->container ? fs->container : node->name;
    int folder = limefs_tree_parent(fs, node);
    if (folder < 0)
        return folder;
    int fd = limefile_reopen(folder, O_RDONLY | O_DIRECTORY);
    close(folder);
    return fd;
}

/* ---- made good ---- */

static void note(void *context, const char *text)
{
    char path[PATH_MAX];
    limefs_log(LOG_NOTICE, "%s: recover: %s", limefs_writer_label(context, path, sizeof path),
               text);
}

static int copy_tail(int from, int to, uint64_t offset, uint64_t end)
{
    off_t at = (off_t)offset;
    while ((uint64_t)at < end) {
        ssize_t moved = sendfile(to, from, &at, end - (uint64_t)at);
        if (moved <= 0)
            return moved < 0 ? -errno : -EIO;
    }
    return fsync(to) == 0 ? 0 : -errno;
}

/* Copies the bytes and brings them to the disk, name and all. */
static int fill_kept(const struct limefs_writer *writer, int folder, int fd, uint64_t from,
                     uint64_t size)
{
    int err = copy_tail(writer->shared.fd, fd, from, size);
    return err ? err : fsync(folder) == 0 ? 0 : -errno;
}

/* Beside the container, as `lime repair` does; whether or not who writes may make files there.
 */
static int keep(void *context, uint64_t from, uint64_t size)
{
    struct limefs_writer *writer = context;
    char *made = NULL, path[PATH_MAX];
    const char *container;
    limefs_own_begin();
    int folder = limefs_writer_folder(writer, &container);
    int fd = folder < 0
                 ? folder
                 : limefile_create_kept(folder, container, from, writer->shared.fd, &made);
    limefs_own_end();
    if (folder < 0)
        return folder;
    int err = fd < 0 ? fd : fill_kept(writer, folder, fd, from, size);
    if (fd >= 0)
        close(fd);
    if (err && fd >= 0) {
        limefs_own_begin();
        unlinkat(folder, made, 0);
        limefs_own_end();
    }
    close(folder);
    limefs_log(err ? LOG_ERR : LOG_NOTICE, "%s: recover: %s %s%s%s",
               limefs_writer_label(writer, path, sizeof path),
               err ? "bytes behind the last record cannot be kept in" : "they are kept in",
               made ? made : container, err ? ": " : "", err ? limefile_strerror(err) : "");
    free(made);
    return err;
}

static int recover(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    int err = limefile_recover(&writer->file.source, note, keep, writer);
    if (!err || !limefile_is_fault(err)) /* deviations that only another record would mend */
        return 0;
    limefs_log(LOG_ERR, "%s: write: %s; look at it with lime check, mend it with lime repair",
               limefs_writer_label(writer, path, sizeof path), limefile_strerror(err));
    return -EIO;
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
        limefs_view_show(writer->fs, writer->view, index);
    else
        limefile_index_free(index);
    return err;
}

int limefs_writer_reopen(struct limefs_writer *writer)
{
    struct limefile_last last;
    struct limefile_editor *editor;
    struct limefile_index *index = limefs_view_index(writer->fs, writer->view);
    int err = limefile_editor_new(&writer->file.source, index, &editor);
    limefile_index_free(index);
    if (err)
        return err;
    limefile_editor_free(writer->editor);
    writer->editor = editor;
    writer->length = limefile_editor_last(editor, &last) == 0 ? last.bytes : 0;
    writer->grown = false;
    writer->failed = 0;
    return 0;
}

uint64_t limefs_writer_beyond(const struct limefs_writer *writer, uint64_t size)
{
    uint64_t end;
    if (!writer->editor || writer->grown || limefile_editor_end(writer->editor, &end) != 0)
        return 0; /* nobody writes, or where it ends is not settled */
    return size > end ? size - end : 0;
}

uint64_t limefs_writer_added(const struct limefs_writer *writer)
{
    struct stat st;
    return fstat(writer->shared.fd, &st) == 0
               ? limefs_writer_beyond(writer, (uint64_t)st.st_size)
               : 0;
}

int limefs_writer_catch_up(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    uint64_t added = writer->behind ? 0 : limefs_writer_added(writer);
    if (!writer->behind && !added)
        return 0;
    int err = limefs_writer_reindex(writer);
    if (!err)
        err = limefs_writer_reopen(writer);
    writer->behind = writer->behind && err;
    if (added)
        limefs_log(
            err ? LOG_ERR : LOG_WARNING, "%s: write: somebody else has added %llu bytes%s",
            limefs_writer_label(writer, path, sizeof path), (unsigned long long)added,
            err ? " that are no record, or none yet; nothing is written before they are, "
                  "or it is mounted again"
                : ", which are shown from now on; a mount for writing should be alone");
    return err && added ? -ESTALE : err;
}

/* ---- opened and closed ---- */

/* The mount before this one may be about to end. */
static int lock_soon(int fd)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    int err = limefile_lock(fd);
    for (int i = 0; err == -EBUSY && i < PATIENCE_MS / PAUSE_MS; i++) {
        nanosleep(&pause, NULL);
        err = limefile_lock(fd);
    }
    return err;
}

static int lock(struct limefs_writer *writer)
{
    char path[PATH_MAX];
    const char *label = limefs_writer_label(writer, path, sizeof path);
    int err = lock_soon(writer->shared.fd);
    if (err == -EBUSY)
        limefs_log(LOG_ERR,
                   "%s: lock: another process has this container open for writing, a "
                   "read-write mount perhaps; unmount it first",
                   label);
    else if (err)
        limefs_log(LOG_WARNING, "%s: lock: %s; make sure that nobody else writes to it", label,
                   limefile_strerror(err));
    return err == -EBUSY ? err : 0;
}

static int sync_source(struct limefile_source *source)
{
    return limefs_writer_fsync(
        (struct limefs_writer *)((char *)source - offsetof(struct limefs_writer, file.source)));
}

static void init_source(struct limefs_writer *writer)
{
    limefile_fd_init(&writer->file, writer->shared.fd);
    writer->ops = *writer->file.source.ops;
    writer->ops.sync = sync_source;
    writer->file.source.ops = &writer->ops;
}

/* It may have changed before it was locked, or another file may have its name. */
static int check_unchanged(const struct limefs_writer *writer)
{
    struct stat now, named, then = limefs_view_stat(writer->fs, writer->view);
    if (fstat(writer->shared.fd, &now) != 0)
        return -errno;
    int err = limefs_tree_stat(writer->fs, writer->view->node, &named);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    struct limefs_stamp a = limefs_stamp_of(&now), b = limefs_stamp_of(&then);
    return limefs_stamp_same_data(&a, &b) && named.st_dev == now.st_dev &&
                   named.st_ino == now.st_ino
               ? 0
               : -ESTALE;
}

static int open_container(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    struct limefs_view *view = writer->view;
    if (writer->behind) /* another view shows what the container is now */
        return -ESTALE;
    limefs_own_begin(); /* to be shared; whether the caller may write was asked before */
    writer->shared.fd = limefile_reopen(view->fd, O_RDWR | O_NONBLOCK); /* a lease: -EAGAIN */
    limefs_own_end();
    if (writer->shared.fd < 0)
        return writer->shared.fd;
    init_source(writer);
    int err = lock(writer);
    if (!err)
        err = check_unchanged(writer);
    if (err)
        return err;
    limefs_view_set_written(fs, view, true);
    struct limefile_index *index = limefs_view_index(fs, view);
    bool good = !limefile_index_fault(index) && !limefile_index_deviations(index);
    limefile_index_free(index);
    if (!good) {
        err = recover(writer);
        if (!err)
            err = limefs_writer_reindex(writer);
    }
    if (!err)
        err = limefs_writer_reopen(writer);
    return err;
}

static void close_container(struct limefs_writer *writer)
{
    if (writer->shared.fd < 0)
        return;
    limefile_editor_free(writer->editor);
    writer->editor = NULL;
    limefs_view_set_written(writer->fs, writer->view, false);
    if (writer->behind)
        limefs_view_distrust(writer->fs, writer->view);
    close(writer->shared.fd);
    writer->shared.fd = -1;
}

static struct limefs_writer *writer_of(struct limefs *fs, struct limefs_view *view)
{
    limefs_lock(&fs->lock);
    struct limefs_writer *writer = view->writer;
    if (!writer && (writer = calloc(1, sizeof *writer))) {
        writer->fs = fs;
        writer->view = writer->shared.view = view;
        writer->shared.fd = -1;
        limefs_lock_init(&writer->life, LIMEFS_LOCK_LIFE);
        limefs_lock_init(&writer->parting, LIMEFS_LOCK_PARTING);
        limefs_condition_init(&writer->parted);
        limefs_rwlock_init(&writer->lock, LIMEFS_LOCK_WRITER);
        view->job = &writer->shared;
        __atomic_store_n(&view->writer, writer, __ATOMIC_RELEASE);
    }
    limefs_unlock(&fs->lock);
    return writer;
}

static void free_writer(struct limefs_writer *writer)
{
    if (!writer)
        return;
    limefile_editor_free(writer->editor);
    if (writer->shared.fd >= 0)
        close(writer->shared.fd);
    pthread_cond_destroy(&writer->parted);
    limefs_lock_destroy(&writer->parting);
    limefs_lock_destroy(&writer->life);
    limefs_rwlock_destroy(&writer->lock);
    free(writer);
}

static void on_freed(struct limefs_view *view)
{
    free_writer(view->writer);
}

void limefs_writers_begin(struct limefs *fs)
{
    static const struct limefs_view_watch watch = {.freed = on_freed};
    limefs_view_watch(fs, &watch);
}

static void give_up(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    struct limefs_view *view = writer->view;
    limefs_lock(&writer->life);
    if (--writer->users == 0) {
        limefs_take(&writer->lock);
        close_container(writer);
        limefs_leave(&writer->lock);
    }
    limefs_unlock(&writer->life);
    limefs_view_unpin(fs, view); /* which may be the end of both */
}

/* ---- held for as long as the mount lasts ---- */

/* Of a container that another has replaced, or that was away for a while. Only where `view` is
 * what there is now. */
static void let_go_of_others(struct limefs *fs, struct limefs_view *view)
{
    struct limefs_view *held = NULL;
    limefs_lock(&fs->lock);
    if (fs->held != view && view->node->view == view) {
        held = fs->held;
        fs->held = NULL;
    }
    limefs_unlock(&fs->lock);
    if (held)
        give_up(held->writer);
}

/* One more user, who stays. */
static void hold_on(struct limefs_writer *writer)
{
    struct limefs *fs = writer->fs;
    limefs_lock(&fs->lock);
    bool first = fs->container && !fs->held && writer->view->node->view == writer->view;
    if (first)
        fs->held = writer->view;
    limefs_unlock(&fs->lock);
    if (!first)
        return;
    writer->users++;
    limefs_view_hold(fs, writer->view);
}

void limefs_writer_let_go(struct limefs *fs)
{
    if (fs->held)
        give_up(fs->held->writer);
    fs->held = NULL;
}

/* One user more. */
static int use(struct limefs *fs, struct limefs_view *view, struct limefs_writer **out)
{
    struct limefs_change change;
    int err = limefs_caller_may(view->fd, W_OK);
    if (err)
        return err;
    struct limefs_writer *writer = writer_of(fs, view);
    if (!writer)
        return -ENOMEM;
    let_go_of_others(fs, view);
    limefs_lock(&writer->life);
    if (writer->users == 0) {
        limefs_take(&writer->lock);
        limefs_job_change(fs, view, &change, 0, UINT64_MAX, true);
        err = open_container(writer);
        if (err)
            close_container(writer);
        limefs_job_changed(fs, view, &change);
        limefs_leave(&writer->lock);
    }
    if (!err) {
        writer->users++;
        limefs_view_hold(fs, view);
        hold_on(writer);
    }
    limefs_unlock(&writer->life);
    *out = writer;
    return err;
}

int limefs_writer_enter(struct limefs *fs, struct limefs_view *view, struct limefs_writer **out)
{
    int err = use(fs, view, out);
    if (err)
        return err;
    limefs_take(&(*out)->lock);
    err = limefs_writer_catch_up(*out);
    if (!err)
        err = limefs_writer_check(*out);
    if (!err) /* what ranks elsewhere write back later would be where it does not belong */
        err = limefs_writer_sync_store(*out);
    if (err)
        limefs_writer_leave(*out);
    return err;
}

void limefs_writer_leave(struct limefs_writer *writer)
{
    limefs_job_touched(writer->fs, writer->view);
    limefs_leave(&writer->lock);
    give_up(writer);
}

int limefs_writer_hold(struct limefs *fs, struct limefs_view *view)
{
    struct limefs_writer *writer;
    int err = use(fs, view, &writer);
    if (!err)
        give_up(writer);
    return err;
}

/* ---- targets ---- */

struct limefs_target *limefs_writer_target(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefs_target *target = writer->targets;
    while (target && target->ordinal != ordinal)
        target = target->next;
    return target;
}

/* Each user of a target is one of the writer, and holds the view. */
int limefs_target_attach(struct limefs_writer *writer, uint64_t ordinal,
                         struct limefs_target **out)
{
    struct limefs_target *target = limefs_writer_target(writer, ordinal);
    if (!target && !(target = calloc(1, sizeof *target)))
        return -ENOMEM;
    if (target->users++ == 0) {
        target->writer = writer;
        target->ordinal = ordinal;
        target->aside = -1;
        target->next = writer->targets;
        writer->targets = target;
    }
    writer->users++; /* the caller is one */
    limefs_view_hold(writer->fs, writer->view);
    limefs_store_prepare(writer->fs, writer->view);
    *out = target;
    return 0;
}

int limefs_target_open(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                       bool appends, struct limefs_target **out)
{
    struct limefs_writer *writer;
    int err = use(fs, view, &writer);
    if (err)
        return err;
    limefs_take(&writer->lock);
    err = limefs_writer_catch_up(writer);
    if (!err)
        err = limefs_writer_check(writer);
    if (!err && appends)
        err = limefs_writer_may_append(writer, ordinal);
    if (!err)
        err = limefs_target_attach(writer, ordinal, out);
    limefs_leave(&writer->lock);
    give_up(writer);
    return err;
}

int limefs_writer_give_up_last(struct limefs_writer *writer, const struct limefile_last *last,
                               bool forced)
{
    char path[PATH_MAX];
    const char *label = limefs_writer_label(writer, path, sizeof path);
    struct limefs_change change;
    int err = 0;
    if (!last->committed && writer->failed == 0 && !forced)
        err = limefs_writer_commit(writer);
    else if (!last->committed) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) was not finished%s%s: it is taken away",
                   label, (unsigned long long)last->ordinal, last->type,
                   writer->failed ? ", " : "",
                   writer->failed ? limefile_strerror(writer->failed) : "");
        err = limefs_writer_drop_last(writer);
    } else if (writer->grown && (writer->failed || forced)) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) keeps its old length of %llu bytes",
                   label, (unsigned long long)last->ordinal, last->type,
                   (unsigned long long)last->bytes);
        limefs_job_change(writer->fs, writer->view, &change, last->data_offset, UINT64_MAX,
                          true);
        err = limefile_commit(writer->editor, last->bytes);
        writer->length = last->bytes;
        writer->grown = err != 0;
        limefs_job_changed(writer->fs, writer->view, &change);
        limefs_view_renew(writer->fs, writer->view, last->ordinal);
    } else if (writer->grown)
        err = limefs_writer_commit(writer);
    if (!err)
        writer->failed = 0;
    else
        limefs_log(LOG_ERR, "%s: record %llu: close: %s", label,
                   (unsigned long long)last->ordinal, limefile_strerror(err));
    return err;
}

static void forget_target(struct limefs_writer *writer, struct limefs_target *target)
{
    struct limefs_target **at = &writer->targets;
    while (*at != target)
        at = &(*at)->next;
    *at = target->next;
    if (target->aside >= 0)
        close(target->aside);
    free(target);
}

/* What was collected takes the record's place, or goes. */
static void end_aside(struct limefs_target *target, int err, bool forced)
{
    struct limefs_writer *writer = target->writer;
    char path[PATH_MAX];
    if (!target->aside_changed)
        return;
    if (!err)
        err = target->failed;
    if (!err && !forced)
        err = limefs_aside_finish(target);
    if (!err && !forced)
        return;
    limefs_log(err ? LOG_ERR : LOG_WARNING, "%s: record %llu keeps its old data: %s",
               limefs_writer_label(writer, path, sizeof path),
               (unsigned long long)target->ordinal,
               err ? limefile_strerror(err) : "the new ones were not finished");
    limefs_view_renew(writer->fs, writer->view, target->ordinal);
}

void limefs_target_close(struct limefs *fs, struct limefs_target *target, bool forced)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    limefs_take(&writer->lock);
    limefs_writer_flush_store(writer);
    int err = limefs_writer_catch_up(writer);
    if (!err && target->aside >= 0 && target->aside_changed && !forced)
        err = limefs_writer_make_ready(writer); /* lets others in meanwhile */
    if (--target->users == 0) {
        if (target->aside >= 0)
            end_aside(target, err, forced);
        else if (!err && limefs_writer_is_last(writer, target->ordinal, &last))
            limefs_writer_give_up_last(writer, &last, forced);
        forget_target(writer, target);
        limefs_job_touched(fs, writer->view);
    }
    limefs_leave(&writer->lock);
    limefs_lock(&writer->parting);
    pthread_cond_broadcast(&writer->parted);
    limefs_unlock(&writer->parting);
    give_up(writer);
}
