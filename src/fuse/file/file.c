/* file.c - opens, changes and closes files */
#define _GNU_SOURCE
#include "file.h"
#include "readahead.h"
#include "append.h"
#include "credentials.h"
#include "descriptor.h"
#include "kernel_mtime.h"
#include "tree.h"
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static struct limefs_file *alloc_file(void)
{
    struct limefs_file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->fd = -1;
    file->uid = limefs_creds_uid();
    file->gid = limefs_creds_gid();
    file->direct_fd = LIMEFS_DIRECT_UNTRIED;
    limefs_lock_init(&file->lock, LIMEFS_LOCK_FILE);
    return file;
}

static void free_file(struct limefs_file *file)
{
    limefile_index_free(file->index);
    limefs_lock_destroy(&file->lock);
    free(file);
}

/* Sets the file's record. On success, the file takes over the caller's pin. */
static int attach_record(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                         struct limefs_file *file)
{
    file->index = limefs_snapshot_index(fs, snap);
    int err = limefile_index_get(file->index, ordinal, &file->record);
    if (err)
        return -ESTALE;
    file->last_valid = limefs_snapshot_confirmed_identity(fs, snap);
    file->generation = limefs_snapshot_generation(fs, snap, ordinal);
    file->snap = snap;
    return 0;
}

int limefs_file_resize(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                       uint64_t bytes, bool emptied)
{
    struct limefs_export_change change;
    limefs_export_change_begin(fs, snap, ordinal, &change);
    int err = limefs_record_resize(fs, snap, ordinal, bytes, emptied);
    limefs_export_change_end(fs, snap, &change);
    return err;
}

static int open_target(struct limefs *fs, struct limefs_file *file, int flags)
{
    uint64_t ordinal = file->record.ordinal;
    bool append_only = (flags & (O_APPEND | O_TRUNC)) == O_APPEND;
    int err = limefs_target_open(fs, file->snap, ordinal, append_only, &file->target);
    if (!err && flags & O_TRUNC)
        err = limefs_file_resize(fs, file->snap, ordinal, 0, true);
    if (err && file->target)
        limefs_target_close(fs, file->target, false);
    return err;
}

/* -ESTALE: snap is not the current snapshot; the kernel then looks the name up again. */
static int open_record(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                       int flags, struct limefs_file *file)
{
    struct limefs_snapshot *current;
    int err = limefs_snapshot_get_current(fs, snap->node, &current);
    if (err)
        return err == -ENOENT ? -ESTALE : err;
    if (current != snap)
        err = -ESTALE;
    if (!err)
        err = attach_record(fs, snap, ordinal, file);
    if (!err && (flags & O_ACCMODE) != O_RDONLY)
        err = open_target(fs, file, flags);
    else if (!err && flags & O_TRUNC)
        err = limefs_file_resize(fs, snap, ordinal, 0, true);
    if (err)
        limefs_snapshot_unpin(fs, current);
    return err;
}

static int open_export_file(struct limefs *fs, struct limefs_export *export, uint64_t ordinal,
                            int flags, struct limefs_file *file)
{
    struct limefile_export_entry entry;
    if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)
        return -EROFS;
    int err = limefs_export_acquire_entry(fs, export, ordinal, &entry);
    if (err)
        return err;
    struct limefs_snapshot *snap = limefs_export_snapshot(export);
    err = entry.is_dir ? -EISDIR : 0;
    if (!err)
        err = attach_record(fs, snap, limefs_export_record(export), file);
    if (!err) /* the record must be the one that the export was made from */
        err = limefs_export_validate(fs, export);
    if (err) {
        limefs_export_release(fs, export);
        return err;
    }
    limefs_snapshot_add_pin(fs, snap);
    file->export = export;
    file->number = ordinal - 1;
    return 0;
}

/* Opens the file of path_fd with the access mode in flags and the caller's rights. To write a
 * part of a page, a kernel with a write-back cache first reads the whole page. So a file that
 * is opened only for writing is reopened to be read, too, with the daemon's rights, if these
 * permit it. No process can read more by this, because the kernel checks the access mode of the
 * process's own descriptor. Returns a descriptor that the caller closes, or -errno. */
static int open_plain_fd(int path_fd, int flags)
{
    int fd = limefile_reopen(path_fd, (flags & O_ACCMODE) | O_NONBLOCK);
    if (fd < 0 || (flags & O_ACCMODE) != O_WRONLY)
        return fd;
    limefs_daemon_creds_enter();
    int read_write_fd = limefile_reopen(path_fd, O_RDWR | O_NONBLOCK);
    limefs_daemon_creds_leave();
    if (read_write_fd < 0)
        return fd;
    close(fd);
    return read_write_fd;
}

/* Truncates the file for O_TRUNC, by fd or, if fd is read-only, by reopening path_fd. */
static int truncate_fd(struct limefs *fs, struct limefs_node *node, int path_fd, int fd,
                       int flags)
{
    int write_fd =
        (flags & O_ACCMODE) == O_RDONLY ? limefile_reopen(path_fd, O_WRONLY | O_NONBLOCK) : fd;
    if (write_fd < 0)
        return write_fd;
    int err = limefs_append_truncate(fs, node, write_fd, 0);
    if (write_fd != fd)
        close(write_fd);
    return err;
}

/* Opens the node's file and sets *st to its attributes. Returns -ESTALE if the node no longer
 * fits the file (limefs_node_is_current()): the pages of a node must belong to one file. */
static int open_node_fd(struct limefs *fs, struct limefs_node *node, int flags, struct stat *st)
{
    int path_fd = limefs_tree_open_node(fs, node);
    if (path_fd < 0)
        return path_fd;
    int fd = -ESTALE, err = fstat(path_fd, st) == 0 ? 0 : -errno;
    if (!err && S_ISREG(st->st_mode) &&
        (flags & O_TRUNC || limefs_node_is_current(fs, node, st) ||
         limefs_append_allows_open(fs, node, flags, &st->st_mtim)))
        fd = open_plain_fd(path_fd, flags);
    if (fd >= 0 && flags & O_TRUNC)
        err = truncate_fd(fs, node, path_fd, fd, flags);
    if (fd >= 0 && !err && fstat(fd, st) != 0)
        err = -errno;
    close(path_fd);
    if (!err || fd < 0)
        return err ? err : fd;
    close(fd);
    return err;
}

/* Marks a file of the source tree as open for writing. Called with fs->lock held. */
static void mark_writer(struct limefs_file *file, int flags,
                        const struct limefile_identity *stamp)
{
    file->is_writable = true;
    file->is_append_only = limefs_append_note_open(file->node, flags, stamp);
}

/* True if the kernel's cached pages are valid: the file's identity (stamp) is that of the
 * pages, and the file cannot have changed without new times. A recent change by this mount
 * raises no doubt, unless the file system's times are in whole seconds. is_written: another
 * process may be writing. Called with fs->lock held. */
static bool has_valid_pages(struct limefs_node *node, const struct limefile_identity *stamp,
                            bool is_written)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool same = limefile_identity_equal(stamp, &node->plain.cached_identity);
    node->plain.cached_is_ours =
        node->plain.cached_is_ours && same && stamp->ctime.tv_nsec != 0;
    bool is_valid =
        node->plain.cached_is_ours || limefs_identity_is_reliable(stamp, &now, is_written);
    node->plain.cached_identity = is_valid ? *stamp : (struct limefile_identity){0};
    return same && is_valid;
}

static int open_plain(struct limefs *fs, struct limefs_node *node, int flags,
                      struct limefs_file *file, bool *keep_cache)
{
    struct stat st;
    file->fd = open_node_fd(fs, node, flags, &st);
    if (file->fd < 0)
        return file->fd;
    struct limefile_identity stamp = limefile_identify(&st);
    bool read_only = (flags & O_ACCMODE) == O_RDONLY;
    bool is_written = read_only && limefile_is_being_written(file->fd, &stamp.ctime);
    limefs_lock(&fs->lock);
    *keep_cache = has_valid_pages(node, &stamp, is_written);
    file->node = node; /* the kernel holds a lookup of the node as long as the file is open */
    node->plain.was_opened = true;
    if (!read_only)
        mark_writer(file, flags, &stamp);
    limefs_unlock(&fs->lock);
    return 0;
}

int limefs_file_open(struct limefs *fs, uint64_t id, int flags, struct limefs_file **out,
                     bool *keep_cache)
{
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    bool is_plain = inode.node && inode.node->kind == LIMEFS_PLAIN;
    struct limefs_file *file = alloc_file();
    if (!file)
        return -ENOMEM;
    *keep_cache = true;
    int err = -ESTALE;
    if (inode.export)
        err = open_export_file(fs, inode.export, inode.ordinal, flags, file);
    else if (inode.node)
        err = is_plain ? open_plain(fs, inode.node, flags, file, keep_cache) : -EISDIR;
    else if (inode.snap)
        err = open_record(fs, inode.snap, inode.ordinal, flags, file);
    if (err) {
        free_file(file);
        return err;
    }
    limefs_handle_add(fs, &fs->files, &file->handle);
    if (file->snap && !file->target)
        limefs_verify_attach(fs, file->snap, file->record.ordinal, &file->reader);
    *out = file;
    return 0;
}

int limefs_file_open_new_record(struct limefs *fs, struct limefs_snapshot *snap,
                                struct limefs_target *target, struct limefs_file **out)
{
    struct limefs_file *file = alloc_file();
    int err = file ? attach_record(fs, snap, limefs_target_ordinal(target), file) : -ENOMEM;
    if (err) {
        if (file)
            free_file(file);
        limefs_target_close(fs, target, true); /* forced: the record is not complete */
        limefs_snapshot_unpin(fs, snap);
        return err;
    }
    file->target = target;
    limefs_handle_add(fs, &fs->files, &file->handle);
    *out = file;
    return 0;
}

int limefs_file_open_new_plain(struct limefs *fs, struct limefs_node *node, int fd, int flags,
                               struct limefs_file **out)
{
    struct stat st;
    struct limefile_identity stamp = {0};
    struct limefs_file *file = alloc_file();
    if (!file) {
        close(fd);
        return -ENOMEM;
    }
    file->fd = fd;
    if (fstat(fd, &st) == 0)
        stamp = limefile_identify(&st);
    limefs_lock(&fs->lock);
    file->node = node;
    node->plain.was_opened = true;
    mark_writer(file, flags, &stamp);
    limefs_unlock(&fs->lock);
    limefs_handle_add(fs, &fs->files, &file->handle);
    *out = file;
    return 0;
}

/* Closes a file of the source tree, without fs->lock. If it was open for writing, notes its
 * identity as this mount's, so that the kernel's pages are valid at the next open. */
static void close_plain(struct limefs *fs, struct limefs_file *file)
{
    struct stat st;
    bool has_stat = file->is_writable && fstat(file->fd, &st) == 0;
    if (file->is_writable)
        limefs_kernel_mtime_update(fs, file->node, file->fd);
    limefs_lock(&fs->lock);
    if (file->is_writable)
        limefs_append_note_close(file->node, file->is_append_only);
    if (has_stat) {
        file->node->plain.cached_identity = limefile_identify(&st);
        file->node->plain.cached_is_ours = true;
    }
    limefs_unlock(&fs->lock);
    close(file->fd);
}

/* forced: the mount ends while the file is open, so a record may be incomplete. */
static void destroy_file(struct limefs *fs, struct limefs_file *file, bool forced)
{
    limefs_handle_remove(fs, &file->handle);
    limefs_readahead_wait(fs, file);
    limefs_verify_detach(&file->reader);
    if (file->target)
        limefs_target_close(fs, file->target, forced);
    if (file->snap)
        limefs_snapshot_unpin(fs, file->snap);
    if (file->export)
        limefs_export_release(fs, file->export);
    if (file->fd >= 0)
        close_plain(fs, file);
    if (file->direct_fd >= 0)
        close(file->direct_fd);
    free_file(file);
}

void limefs_file_close(struct limefs *fs, struct limefs_file *file)
{
    destroy_file(fs, file, false);
}

bool limefs_file_is_large(const struct limefs *fs, const struct limefs_file *file)
{
    return file->snap && file->record.bytes >= fs->options.forward_from;
}

int limefs_file_dup(struct limefs *fs, const struct limefs_node *node)
{
    int fd = -ENOENT;
    limefs_lock(&fs->lock);
    for (struct limefs_handle *i = node->plain.was_opened ? fs->files : NULL; i && fd < 0;
         i = i->next)
        if (((struct limefs_file *)i)->node == node)
            fd = fcntl(((struct limefs_file *)i)->fd, F_DUPFD_CLOEXEC, 0);
    limefs_unlock(&fs->lock);
    return fd == -1 ? -errno : fd;
}

int limefs_file_get_fd(struct limefs *fs, struct limefs_node *node)
{
    int fd = node->kind == LIMEFS_PLAIN ? limefs_file_dup(fs, node) : -ENOENT;
    return fd < 0 ? limefs_tree_open_node(fs, node) : fd;
}

void limefs_files_release(struct limefs *fs)
{
    while (fs->files)
        destroy_file(fs, (struct limefs_file *)fs->files, true);
}

/* ---- changes of a record or of a file of the source tree ---- */

ssize_t limefs_file_write(struct limefs *fs, struct limefs_file *file, const char *buf,
                          size_t n, uint64_t offset)
{
    if (file->target) {
        struct limefs_export_change change;
        limefs_export_change_begin(fs, file->snap, file->record.ordinal, &change);
        ssize_t written = limefs_target_write(fs, file->target, buf, n, offset);
        limefs_export_change_end(fs, file->snap, &change);
        return written;
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
    limefs_append_note_flush(fs, file->node);
    limefs_kernel_mtime_update(fs, file->node, file->fd);
    int fd = dup(file->fd); /* some file systems report late errors at a close */
    return fd < 0 ? -errno : close(fd) == 0 ? 0 : -errno;
}

int limefs_file_allocate(struct limefs *fs, struct limefs_file *file, int mode, uint64_t offset,
                         uint64_t bytes)
{
    if (file->target) {
        struct limefs_export_change change;
        limefs_export_change_begin(fs, file->snap, file->record.ordinal, &change);
        int err = limefs_target_allocate(fs, file->target, mode, offset, bytes);
        limefs_export_change_end(fs, file->snap, &change);
        return err;
    }
    if (file->fd < 0)
        return -EBADF;
    return limefs_append_allocate(fs, file->node, file->fd, mode, offset, bytes);
}
