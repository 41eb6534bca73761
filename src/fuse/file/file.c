/* file.c - opens, changes and closes files */
#define _GNU_SOURCE
#include "file.h"
#include "ahead.h"
#include "append.h"
#include "caller.h"
#include "descriptor.h"
#include "told.h"
#include "tree.h"
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct limefs_file *new_file(void)
{
    struct limefs_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->fd = -1;
    file->uid = limefs_caller_uid();
    file->gid = limefs_caller_gid();
    file->direct = LIMEFS_DIRECT_UNTRIED;
    limefs_lock_init(&file->lock, LIMEFS_LOCK_FILE);
    return file;
}

static void free_file(struct limefs_file *file)
{
    limefile_index_free(file->index);
    limefs_lock_destroy(&file->lock);
    free(file);
}

/* Sets the file's record. On success, the file takes over the pin of the view. */
static int take_record(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                       struct limefs_file *file)
{
    file->index = limefs_view_index(fs, view);
    int err = limefile_index_get(file->index, ordinal, &file->record);
    if (err)
        return -ESTALE;
    file->checked = limefs_view_settled(fs, view);
    file->generation = limefs_view_generation(fs, view, ordinal);
    file->view = view;
    return 0;
}

int limefs_file_resize(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                       uint64_t bytes, bool emptied)
{
    struct limefs_face_change change;
    limefs_face_change(fs, view, ordinal, &change);
    int err = limefs_record_resize(fs, view, ordinal, bytes, emptied);
    limefs_face_changed(fs, view, &change);
    return err;
}

static int take_target(struct limefs *fs, struct limefs_file *file, int flags)
{
    uint64_t ordinal = file->record.ordinal;
    bool appends = (flags & (O_APPEND | O_TRUNC)) == O_APPEND;
    int err = limefs_target_open(fs, file->view, ordinal, appends, &file->target);
    if (!err && flags & O_TRUNC)
        err = limefs_file_resize(fs, file->view, ordinal, 0, true);
    if (err && file->target)
        limefs_target_close(fs, file->target, false);
    return err;
}

/* The view must be the newest: if not, -ESTALE makes the kernel look the name up again. */
static int open_record(struct limefs *fs, struct limefs_view *view, uint64_t ordinal, int flags,
                       struct limefs_file *file)
{
    struct limefs_view *current;
    int err = limefs_view_current(fs, view->node, &current);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    if (current != view)
        err = -ESTALE;
    if (!err)
        err = take_record(fs, view, ordinal, file);
    if (!err && (flags & O_ACCMODE) != O_RDONLY)
        err = take_target(fs, file, flags);
    else if (!err && flags & O_TRUNC)
        err = limefs_file_resize(fs, view, ordinal, 0, true);
    if (err)
        limefs_view_unpin(fs, current);
    return err;
}

/* Opens a file of an export, for reading only. */
static int open_face(struct limefs *fs, struct limefs_face *face, uint64_t ordinal, int flags,
                     struct limefs_file *file)
{
    struct limefile_face_entry entry;
    if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)
        return -EROFS;
    int err = limefs_face_enter(fs, face, ordinal, &entry);
    if (err)
        return err;
    struct limefs_view *view = limefs_face_view(face);
    err = entry.is_dir ? -EISDIR : 0;
    if (!err)
        err = take_record(fs, view, limefs_face_record(face), file);
    if (!err) /* the record must be the one that the export was made from */
        err = limefs_face_check(fs, face);
    if (err) {
        limefs_face_leave(fs, face);
        return err;
    }
    limefs_view_hold(fs, view);
    file->face = face;
    file->number = ordinal - 1;
    return 0;
}

/* Opens with the caller's rights. A file opened for writing only is reopened for reading, too,
 * with the daemon's rights: a kernel with a write-back cache reads pages that are written in
 * part, and shows them only to processes that may read the file. */
static int open_plain_fd(int file, int flags)
{
    int fd = limefile_reopen(file, (flags & O_ACCMODE) | O_NONBLOCK);
    if (fd < 0 || (flags & O_ACCMODE) != O_WRONLY)
        return fd;
    limefs_own_begin();
    int both = limefile_reopen(file, O_RDWR | O_NONBLOCK);
    limefs_own_end();
    if (both < 0)
        return fd;
    close(fd);
    return both;
}

/* Truncates the file for O_TRUNC. The caller must have permission to write to it. */
static int empty(struct limefs *fs, struct limefs_node *node, int file, int fd, int flags)
{
    int to =
        (flags & O_ACCMODE) == O_RDONLY ? limefile_reopen(file, O_WRONLY | O_NONBLOCK) : fd;
    if (to < 0)
        return to;
    int err = limefs_append_cut(fs, node, to, 0);
    if (to != fd)
        close(to);
    return err;
}

/* Opens the node's file and sets *st to its attributes. Returns -ESTALE if it is not the file
 * that the kernel knows by the node: two files must not share the pages of one node. */
static int open_node(struct limefs *fs, struct limefs_node *node, int flags, struct stat *st)
{
    int file = limefs_tree_hold(fs, node);
    if (file < 0)
        return file;
    int fd = -ESTALE, err = fstat(file, st) == 0 ? 0 : -errno;
    if (!err && S_ISREG(st->st_mode) &&
        (flags & O_TRUNC || limefs_node_stands(fs, node, st) ||
         limefs_append_may_open(fs, node, flags, &st->st_mtim)))
        fd = open_plain_fd(file, flags);
    if (fd >= 0 && flags & O_TRUNC)
        err = empty(fs, node, file, fd, flags);
    if (fd >= 0 && !err && fstat(fd, st) != 0)
        err = -errno;
    close(file);
    if (!err || fd < 0)
        return err ? err : fd;
    close(fd);
    return err;
}

/* Called with fs->lock held. */
static void take_writer(struct limefs_file *file, int flags,
                        const struct limefile_identity *stamp)
{
    file->writes = true;
    file->appends = limefs_append_opened(file->node, flags, stamp);
}

/* True if the kernel's cached pages are valid: the file has not changed, nor can it have
 * changed with the same times. The kernel knows what was written through this mount; so such a
 * change is valid, unless times are whole seconds. Called with fs->lock held. */
static bool keeps_pages(struct limefs_node *node, const struct limefile_identity *stamp,
                        bool moving)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool same = limefile_identity_equal(stamp, &node->plain.cached);
    node->plain.cached_is_ours =
        node->plain.cached_is_ours && same && stamp->ctime.tv_nsec != 0;
    bool settled = node->plain.cached_is_ours || limefs_is_settled(stamp, &now, moving);
    node->plain.cached = settled ? *stamp : (struct limefile_identity){0};
    return same && settled;
}

static int open_other(struct limefs *fs, struct limefs_node *node, int flags,
                      struct limefs_file *file, bool *keep)
{
    struct stat st;
    file->fd = open_node(fs, node, flags, &st);
    if (file->fd < 0)
        return file->fd;
    struct limefile_identity stamp = limefile_identity_of(&st);
    bool reads = (flags & O_ACCMODE) == O_RDONLY;
    bool moving = reads && limefile_is_being_written(file->fd, &stamp.ctime);
    limefs_lock(&fs->lock);
    *keep = keeps_pages(node, &stamp, moving);
    file->node = node; /* the kernel holds a lookup of it as long as the file is open */
    node->plain.opened = true;
    if (!reads)
        take_writer(file, flags, &stamp);
    limefs_unlock(&fs->lock);
    return 0;
}

int limefs_file_open(struct limefs *fs, uint64_t id, int flags, struct limefs_file **out,
                     bool *keep)
{
    struct limefs_inode it = limefs_inode_now(fs, id);
    struct limefs_file *file = new_file();
    if (!file)
        return -ENOMEM;
    *keep = true;
    int err = -ESTALE;
    if (it.face)
        err = open_face(fs, it.face, it.ordinal, flags, file);
    else if (it.node)
        err = it.node->kind == LIMEFS_OTHER ? open_other(fs, it.node, flags, file, keep)
                                            : -EISDIR;
    else if (it.view)
        err = open_record(fs, it.view, it.ordinal, flags, file);
    if (err) {
        free_file(file);
        return err;
    }
    limefs_handle_add(fs, &fs->files, &file->handle);
    if (file->view && !file->target)
        limefs_verify_attach(fs, file->view, file->record.ordinal, &file->reader);
    *out = file;
    return 0;
}

int limefs_file_of_record(struct limefs *fs, struct limefs_view *view,
                          struct limefs_target *target, struct limefs_file **out)
{
    struct limefs_file *file = new_file();
    int err = file ? take_record(fs, view, limefs_target_ordinal(target), file) : -ENOMEM;
    if (err) {
        if (file)
            free_file(file);
        limefs_target_close(fs, target, true); /* forced: the record is not complete */
        limefs_view_unpin(fs, view);
        return err;
    }
    file->target = target;
    limefs_handle_add(fs, &fs->files, &file->handle);
    *out = file;
    return 0;
}

int limefs_file_of_plain(struct limefs *fs, struct limefs_node *node, int fd, int flags,
                         struct limefs_file **out)
{
    struct stat st;
    struct limefile_identity stamp = {0};
    struct limefs_file *file = new_file();
    if (!file) {
        close(fd);
        return -ENOMEM;
    }
    file->fd = fd;
    if (fstat(fd, &st) == 0)
        stamp = limefile_identity_of(&st);
    limefs_lock(&fs->lock);
    file->node = node;
    node->plain.opened = true;
    take_writer(file, flags, &stamp);
    limefs_unlock(&fs->lock);
    limefs_handle_add(fs, &fs->files, &file->handle);
    *out = file;
    return 0;
}

/* Closes a file of the source tree. Its state now results from writes of this mount. */
static void close_plain(struct limefs *fs, struct limefs_file *file)
{
    struct stat st;
    bool known = file->writes && fstat(file->fd, &st) == 0;
    if (file->writes)
        limefs_told_note(fs, file->node, file->fd);
    limefs_lock(&fs->lock);
    if (file->writes)
        limefs_append_closed(file->node, file->appends);
    if (known) {
        file->node->plain.cached = limefile_identity_of(&st);
        file->node->plain.cached_is_ours = true;
    }
    limefs_unlock(&fs->lock);
    close(file->fd);
}

static void close_file(struct limefs *fs, struct limefs_file *file, bool forced)
{
    limefs_handle_remove(fs, &file->handle);
    limefs_ahead_closing(fs, file);
    limefs_verify_detach(&file->reader);
    if (file->target)
        limefs_target_close(fs, file->target, forced);
    if (file->view)
        limefs_view_unpin(fs, file->view);
    if (file->face)
        limefs_face_leave(fs, file->face);
    if (file->fd >= 0)
        close_plain(fs, file);
    if (file->direct >= 0)
        close(file->direct);
    free_file(file);
}

void limefs_file_close(struct limefs *fs, struct limefs_file *file)
{
    close_file(fs, file, false);
}

bool limefs_file_is_large(const struct limefs *fs, const struct limefs_file *file)
{
    return file->view && file->record.bytes >= fs->options.forward_from;
}

int limefs_file_dup(struct limefs *fs, const struct limefs_node *node)
{
    int fd = -ENOENT;
    limefs_lock(&fs->lock);
    for (struct limefs_handle *i = node->plain.opened ? fs->files : NULL; i && fd < 0;
         i = i->next)
        if (((struct limefs_file *)i)->node == node)
            fd = fcntl(((struct limefs_file *)i)->fd, F_DUPFD_CLOEXEC, 0);
    limefs_unlock(&fs->lock);
    return fd == -1 ? -errno : fd;
}

int limefs_file_hold(struct limefs *fs, struct limefs_node *node)
{
    int fd = node->kind == LIMEFS_OTHER ? limefs_file_dup(fs, node) : -ENOENT;
    return fd < 0 ? limefs_tree_hold(fs, node) : fd;
}

void limefs_files_release(struct limefs *fs)
{
    while (fs->files)
        close_file(fs, (struct limefs_file *)fs->files, true);
}

/* ---- changes of a record or of a file of the source tree ---- */

ssize_t limefs_file_write(struct limefs *fs, struct limefs_file *file, const char *buf,
                          size_t n, uint64_t offset)
{
    if (file->target) {
        struct limefs_face_change change;
        limefs_face_change(fs, file->view, file->record.ordinal, &change);
        ssize_t put = limefs_target_write(fs, file->target, buf, n, offset);
        limefs_face_changed(fs, file->view, &change);
        return put;
    }
    return file->fd >= 0 ? limefs_append_write(fs, file->node, file->fd, buf, n, offset)
                         : -EBADF;
}

int limefs_file_sync(struct limefs *fs, struct limefs_file *file, bool closing)
{
    if (file->target)
        return limefs_target_sync(fs, file->target, closing);
    if (file->fd < 0)
        return 0;
    if (!closing)
        return fsync(file->fd) == 0 ? 0 : -errno;
    limefs_append_flushed(fs, file->node);
    limefs_told_note(fs, file->node, file->fd);
    int fd = dup(file->fd); /* some file systems report late errors when a file is closed */
    return fd < 0 ? -errno : close(fd) == 0 ? 0 : -errno;
}

int limefs_file_allocate(struct limefs *fs, struct limefs_file *file, int mode, uint64_t offset,
                         uint64_t bytes)
{
    if (file->target) {
        struct limefs_face_change change;
        limefs_face_change(fs, file->view, file->record.ordinal, &change);
        int err = limefs_target_allocate(fs, file->target, mode, offset, bytes);
        limefs_face_changed(fs, file->view, &change);
        return err;
    }
    if (file->fd < 0)
        return -EBADF;
    return limefs_append_allocate(fs, file->node, file->fd, mode, offset, bytes);
}
