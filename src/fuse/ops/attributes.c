/* attributes.c - sets mode, owner, length and times */
#define _GNU_SOURCE
#include "attributes.h"
#include "append.h"
#include "credentials.h"
#include "descriptor.h"
#include "kernel_mtime.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

enum {
    TIMES = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
            FUSE_SET_ATTR_MTIME_NOW,
};

static struct timespec select_time(int which, int value, int now, const struct timespec *time)
{
    struct timespec set = {0, which & now ? UTIME_NOW : UTIME_OMIT};
    return which & value && !(which & now) ? *time : set;
}

static void select_times(int which, const struct stat *st, struct timespec times[2])
{
    times[0] = select_time(which, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, &st->st_atim);
    times[1] = select_time(which, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, &st->st_mtim);
}

/* Limits the times of a request that its user may not set. A kernel with a write-back cache
 * sends such a request in two cases. (1) The kernel itself sets, by a file open for writing, an
 * mtime that it has kept. Returns true: the caller must use the daemon's rights. Omits a given
 * atime, which only the owner may set. (2) A program that may write to the file, but does not
 * own it, sets its times to now. Returns false, and changes both times to now. */
static bool limit_write_times(const struct limefs_file *file, struct timespec times[2])
{
    bool is_open = file && (file->is_writable || file->target);
    if (!is_open)
        times[0].tv_nsec = times[1].tv_nsec = UTIME_NOW;
    else if (times[0].tv_nsec != UTIME_NOW)
        times[0].tv_nsec = UTIME_OMIT;
    return is_open;
}

/* Returns true if, after this error, the request may be one for limit_write_times(). */
static bool may_follow_write(int err, int which)
{
    return (err == -EPERM || err == -EACCES) && which & FUSE_SET_ATTR_CTIME;
}

static int set_times(const struct limefs_file *file, int fd, int which, const struct stat *st)
{
    struct timespec times[2];
    char path[LIMEFILE_FD_PATH_MAX];
    select_times(which, st, times);
    limefile_fd_path(fd, path);
    int err = utimensat(AT_FDCWD, path, times, 0) == 0 ? 0 : -errno;
    if (!may_follow_write(err, which))
        return err;
    bool as_daemon = limit_write_times(file, times);
    if (as_daemon)
        limefs_daemon_creds_enter();
    err = utimensat(AT_FDCWD, path, times, 0) == 0 ? 0 : -errno;
    if (as_daemon)
        limefs_daemon_creds_leave();
    return err;
}

/* True if the kernel may only be reporting a new ctime, after a change of attributes or names;
 * it adds the mtime that it got from the daemon. (Programs usually set mtime and atime.) */
static bool may_only_set_ctime(int which)
{
    return (which & TIMES) == FUSE_SET_ATTR_MTIME && which & FUSE_SET_ATTR_CTIME;
}

static int set_node_times(struct limefs *fs, struct limefs_node *node,
                          const struct limefs_file *file, int fd, int which,
                          const struct stat *st)
{
    if (node->kind != LIMEFS_PLAIN ||
        !(which & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)))
        return set_times(file, fd, which, st);
    if (may_only_set_ctime(which) &&
        limefs_kernel_mtime_is_outdated(fs, node, fd, &st->st_mtim))
        return 0;
    limefs_kernel_mtime_change_begin(fs, node);
    limefs_lock(&node->io_lock);
    int err = set_times(file, fd, which, st);
    if (!err && !(which & FUSE_SET_ATTR_MTIME_NOW))
        limefs_kernel_mtime_note_set(fs, node, &st->st_mtim);
    limefs_unlock(&node->io_lock);
    limefs_kernel_mtime_change_end(fs, node, fd, err);
    return err;
}

static int set_mode_and_owner(int fd, int which, const struct stat *st)
{
    char path[LIMEFILE_FD_PATH_MAX];
    uid_t uid = which & FUSE_SET_ATTR_UID ? st->st_uid : (uid_t)-1;
    gid_t gid = which & FUSE_SET_ATTR_GID ? st->st_gid : (gid_t)-1;
    limefile_fd_path(fd, path);
    if ((uid != (uid_t)-1 || gid != (gid_t)-1) && chown(path, uid, gid) != 0)
        return -errno;
    if (which & FUSE_SET_ATTR_MODE && chmod(path, st->st_mode & 07777) != 0)
        return -errno;
    return 0;
}

/* Truncates by fd if file is writable, or reopens fd for this with the thread's rights. */
static int set_node_size(struct limefs *fs, struct limefs_node *node,
                         const struct limefs_file *file, int fd, off_t size)
{
    bool is_open = file && file->is_writable;
    int write_fd = is_open ? fd : limefile_reopen(fd, O_WRONLY | O_NONBLOCK);
    if (write_fd < 0)
        return write_fd;
    int err = limefs_append_truncate(fs, node, write_fd, (uint64_t)size);
    if (!is_open)
        close(write_fd);
    return err;
}

/* True if the request changes mode or owner, which a record shares with its container. */
static bool changes_mode_or_owner(const struct stat *now, int which, const struct stat *st)
{
    return (which & FUSE_SET_ATTR_MODE && (st->st_mode & 0666) != (now->st_mode & 0666)) ||
           (which & FUSE_SET_ATTR_UID && st->st_uid != now->st_uid) ||
           (which & FUSE_SET_ATTR_GID && st->st_gid != now->st_gid);
}

/* True for the mtime that the kernel keeps: only the kernel sets times through an open file. */
static bool is_kernel_mtime(const struct limefs_file *file, int which)
{
    return file && file->target && (which & TIMES) == FUSE_SET_ATTR_MTIME;
}

static int set_record_times(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                            const struct limefs_file *file, int which, const struct stat *st)
{
    struct timespec times[2];
    if (may_only_set_ctime(which) && limefs_snapshot_has_reported_mtime(fs, snap, &st->st_mtim))
        return 0;
    if (is_kernel_mtime(file, which) && limefs_target_defer_mtime(file->target, &st->st_mtim))
        return 0;
    select_times(which, st, times);
    int err = limefs_record_set_times(fs, snap, ordinal, times);
    if (!may_follow_write(err, which))
        return err;
    bool as_daemon = limit_write_times(file, times);
    if (as_daemon)
        limefs_daemon_creds_enter();
    err = limefs_record_set_times(fs, snap, ordinal, times);
    if (as_daemon)
        limefs_daemon_creds_leave();
    return err;
}

static int set_record_attrs(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                            const struct limefs_file *file, int which, const struct stat *st)
{
    struct stat now = limefs_snapshot_stat(fs, snap);
    char path[PATH_MAX];
    /* Ignore mode and owner for a new record, whose mode at creation was ignored, too. */
    if (changes_mode_or_owner(&now, which, st) && !limefs_record_is_new(snap, ordinal)) {
        limefs_log(LOG_ERR, "%s: record %llu: mode and owner are the container's; change those",
                   limefs_tree_display_path(fs, snap->node, path, sizeof path),
                   (unsigned long long)ordinal);
        return -EPERM;
    }
    int err = limefs_snapshot_pin(fs, snap);
    if (err)
        return err;
    if (which & FUSE_SET_ATTR_SIZE)
        err = limefs_file_resize(fs, snap, ordinal, (uint64_t)st->st_size, false);
    if (!err && which & TIMES)
        err = set_record_times(fs, snap, ordinal, file, which, st);
    limefs_snapshot_unpin(fs, snap);
    return err;
}

/* Returns true if the node's name leads to another file than fd. This can be a copy by which
 * this mount has replaced a container. Returns false if the name cannot be examined. */
static bool was_replaced(struct limefs *fs, struct limefs_node *node, int fd)
{
    struct stat before, named;
    return fstat(fd, &before) == 0 && limefs_tree_stat(fs, node, &named) == 0 &&
           (before.st_dev != named.st_dev || before.st_ino != named.st_ino);
}

static int set_node_attrs(struct limefs *fs, struct limefs_node *node, struct limefs_file *file,
                          int which, const struct stat *st)
{
    bool is_open = file && file->fd >= 0;
    int fd = is_open ? file->fd : limefs_file_get_fd(fs, node);
    if (fd < 0)
        return fd;
    struct stat mode = *st;
    struct stat now;
    if (node->kind == LIMEFS_CONTAINER && fstat(fd, &now) == 0) /* keep the file's x bits */
        mode.st_mode = (now.st_mode & 07111) | (st->st_mode & 0666);
    int err = set_mode_and_owner(fd, which, &mode);
    if (!err && which & FUSE_SET_ATTR_SIZE)
        err = set_node_size(fs, node, is_open ? file : NULL, fd, st->st_size);
    if (!err && which & TIMES)
        err = set_node_times(fs, node, file, fd, which, st);
    if (!err && node->kind == LIMEFS_CONTAINER && was_replaced(fs, node, fd))
        err = -ESTALE; /* the kernel tries again, with the new file */
    else if (!err && fstat(fd, &now) == 0)
        limefs_node_note_attributes(fs, node, &now);
    if (!is_open)
        close(fd);
    return err;
}

int limefs_attributes_set(struct limefs *fs, uint64_t id, struct limefs_file *file, int which,
                          const struct stat *st)
{
    struct limefs_inode inode = limefs_inode_find_current(fs, id);
    if (inode.node && inode.node->kind != LIMEFS_PLAIN && which & FUSE_SET_ATTR_SIZE)
        return -EISDIR;
    return inode.node       ? set_node_attrs(fs, inode.node, file, which, st)
           : inode.snap     ? set_record_attrs(fs, inode.snap, inode.ordinal, file, which, st)
           : inode.is_stale ? LIMEFILE_E_NO_RECORD
                            : -ESTALE;
}
