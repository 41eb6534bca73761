/* change.c - names made, removed and moved */
#define _GNU_SOURCE
#include "change.h"
#include "caller.h"
#include "descriptor.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

enum {
    CREATE_TRIES = 8, /* while others make and remove the same name */
};

static void say(struct limefs *fs, const struct limefs_node *node, const char *action,
                const char *name, const char *reason)
{
    char path[PATH_MAX];
    limefs_log(LOG_ERR, "%s: %s %s: %s", limefs_tree_label(fs, node, path, sizeof path), action,
               name, reason);
}

static struct limefs_node *parent_of(struct limefs *fs, uint64_t id, enum limefs_kind *kind)
{
    struct limefs_node *node = limefs_inode_node(fs, id);
    *kind = node ? node->kind : LIMEFS_OTHER;
    return node;
}

/* ---- records ---- */

static int create_record(struct limefs *fs, struct limefs_node *container, const char *name,
                         struct limefs_file **file, struct fuse_entry_param *entry)
{
    struct limefs_view *view;
    struct limefs_target *target;
    int err = limefs_view_current(fs, container, &view);
    if (err)
        return err;
    err = limefs_record_append(fs, view, name, &target);
    if (err) {
        limefs_view_unpin(fs, view);
        return err;
    }
    err = limefs_file_of_record(fs, view, target, file); /* which has the pin now */
    if (!err)
        limefs_entry_record(fs, view, &(*file)->record, entry);
    return err;
}

static int remove_record(struct limefs *fs, struct limefs_node *container, const char *name)
{
    struct limefs_view *view;
    struct limefile_record record;
    int err = limefs_view_current(fs, container, &view);
    if (err)
        return err;
    struct limefile_index *index = limefs_view_index(fs, view);
    err = limefile_name_find(index, name, &record);
    limefile_index_free(index);
    if (!err)
        err = limefs_record_remove(fs, view, record.ordinal);
    limefs_view_unpin(fs, view);
    return err;
}

/* ---- files of the tree ---- */

/* fd is what has just been made, and the name's only as long as nobody renames it: so what the
 * kernel is told of, and opens, is what fd has open. Takes fd over. */
static int open_made(struct limefs *fs, struct limefs_node *directory, const char *name, int fd,
                     struct limefs_file **file, struct fuse_entry_param *entry)
{
    struct stat st;
    int err = fstat(fd, &st) == 0 ? limefs_entry_made(fs, directory, name, &st, entry) : -errno;
    if (err) {
        close(fd);
        return err;
    }
    err = limefs_file_of_plain(fs, limefs_inode_node(fs, entry->ino), fd, file);
    if (err)
        limefs_forget(fs, entry->ino, 1);
    return err;
}

/* It has come since the kernel looked. -ESTALE: the kernel looks again, and does with it what
 * is to be done with a directory, or a link. */
static int open_found(struct limefs *fs, struct limefs_node *directory, const char *name,
                      int flags, struct limefs_file **file, struct fuse_entry_param *entry)
{
    bool keep;
    int err = limefs_entry(fs, limefs_inode_of_node(directory), name, entry);
    if (err)
        return err;
    err = S_ISREG(entry->attr.st_mode) ? limefs_file_open(fs, entry->ino, flags, file, &keep)
                                       : -ESTALE;
    if (err)
        limefs_forget(fs, entry->ino, 1);
    return err;
}

/* The kernel may read from what is open for writing alone: for whole pages. */
static int make_plain(struct limefs *fs, struct limefs_node *directory, const char *name,
                      mode_t mode)
{
    int folder = limefs_tree_folder(fs, directory);
    if (folder < 0)
        return folder;
    int fd =
        openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 07777);
    int err = fd < 0 ? -errno : fd;
    close(folder);
    return err;
}

static int create_plain(struct limefs *fs, struct limefs_node *directory, const char *name,
                        mode_t mode, int flags, struct limefs_file **file,
                        struct fuse_entry_param *entry)
{
    int err = -ENOENT;
    for (int i = 0; i < CREATE_TRIES && err == -ENOENT; i++) { /* others make and remove it */
        int fd = make_plain(fs, directory, name, mode);
        if (fd >= 0)
            return open_made(fs, directory, name, fd, file, entry);
        if (fd != -EEXIST || flags & O_EXCL)
            return fd;
        err = open_found(fs, directory, name, flags, file, entry);
    }
    return err;
}

int limefs_create(struct limefs *fs, uint64_t parent, const char *name, mode_t mode, int flags,
                  struct limefs_file **file, struct fuse_entry_param *entry)
{
    enum limefs_kind kind;
    struct limefs_node *node = parent_of(fs, parent, &kind);
    if (kind == LIMEFS_CONTAINER)
        return create_record(fs, node, name, file, entry);
    if (kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    return create_plain(fs, node, name, mode, flags, file, entry);
}

int limefs_make_link(struct limefs *fs, uint64_t parent, const char *name, const char *target,
                     struct fuse_entry_param *entry)
{
    enum limefs_kind kind;
    struct limefs_node *node = parent_of(fs, parent, &kind);
    if (kind != LIMEFS_DIRECTORY)
        return -EPERM;
    int folder = limefs_tree_folder(fs, node);
    if (folder < 0)
        return folder;
    int err = symlinkat(target, folder, name) == 0 ? 0 : -errno;
    close(folder);
    return err ? err : limefs_entry(fs, parent, name, entry);
}

int limefs_link(struct limefs *fs, uint64_t id, uint64_t parent, const char *name,
                struct fuse_entry_param *entry)
{
    enum limefs_kind kind;
    char path[LIMEFILE_FD_PATH_MAX];
    struct limefs_node *node = parent_of(fs, parent, &kind), *file = limefs_inode_node(fs, id);
    if (kind != LIMEFS_DIRECTORY || !file || file->kind != LIMEFS_OTHER)
        return -EPERM;
    int folder = limefs_tree_folder(fs, node), fd = limefs_tree_hold(fs, file);
    int err = folder < 0 ? folder : fd < 0 ? fd : 0;
    limefile_fd_path(fd, path);
    if (!err && linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) != 0)
        err = -errno;
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return err ? err : limefs_entry(fs, parent, name, entry);
}

/* ---- containers ---- */

/* Name and all, with the daemon's own rights: to make a name in a folder one need not be able
 * to read it. */
static int sync_made(int folder, int fd)
{
    limefs_own_begin();
    int again = limefile_reopen(folder, O_RDONLY | O_DIRECTORY);
    limefs_own_end();
    if (again < 0)
        return again;
    int err = fsync(fd) == 0 && fsync(again) == 0 ? 0 : -errno;
    close(again);
    return err;
}

/* Unless somebody has given the name to another file since. */
static void unmake(int folder, const char *name, int fd)
{
    struct stat made, named;
    if (fstat(fd, &made) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        made.st_dev == named.st_dev && made.st_ino == named.st_ino)
        unlinkat(folder, name, 0);
}

static int make_container(struct limefs *fs, struct limefs_node *directory, const char *name,
                          mode_t mode)
{
    struct stat st;
    int folder = limefs_tree_folder(fs, directory);
    if (folder < 0)
        return folder;
    int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0666);
    int err = fd < 0 ? -errno : sync_made(folder, fd);
    if (!err && fstat(fd, &st) != 0)
        err = -errno;
    if (!err)
        err = limefs_node_made(fs, directory, name, &st);
    if (err && fd >= 0)
        unmake(folder, name, fd);
    if (fd >= 0)
        close(fd);
    close(folder);
    return err;
}

int limefs_make_directory(struct limefs *fs, uint64_t parent, const char *name, mode_t mode,
                          struct fuse_entry_param *entry)
{
    enum limefs_kind kind;
    struct limefs_node *node = parent_of(fs, parent, &kind);
    if (kind != LIMEFS_DIRECTORY) {
        if (node)
            say(fs, node, "mkdir", name,
                "this is a container, which holds records; mkdir creates containers here, not "
                "directories");
        return -EPERM;
    }
    int err = make_container(fs, node, name, mode);
    return err ? err : limefs_entry(fs, parent, name, entry);
}

/* Of an empty container; a directory of the file system below passes through. */
int limefs_remove_directory(struct limefs *fs, uint64_t parent, const char *name)
{
    enum limefs_kind kind;
    struct fuse_entry_param entry;
    struct limefs_node *node = parent_of(fs, parent, &kind);
    if (kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int err = limefs_entry(fs, parent, name, &entry);
    if (err)
        return err;
    struct limefs_node *child = limefs_inode_node(fs, entry.ino);
    bool container = child && child->kind == LIMEFS_CONTAINER;
    struct stat st;
    int folder = limefs_tree_folder(fs, node);
    if (folder < 0)
        err = folder;
    else if (container && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        err = -errno;
    else if (container && !limefs_node_is(fs, child, &st))
        err = -ESTALE;
    else if (container && st.st_size > 0) {
        say(fs, node, "rmdir", name,
            "the container holds records; remove them first, or the file");
        err = -ENOTEMPTY;
    } else if (unlinkat(folder, name, container ? 0 : AT_REMOVEDIR) != 0)
        err = -errno;
    if (folder >= 0)
        close(folder);
    limefs_forget(fs, entry.ino, 1);
    if (!err)
        limefs_node_unmade(fs, node, name);
    return err;
}

int limefs_remove(struct limefs *fs, uint64_t parent, const char *name)
{
    enum limefs_kind kind;
    struct limefs_node *node = parent_of(fs, parent, &kind);
    if (kind == LIMEFS_CONTAINER)
        return remove_record(fs, node, name);
    if (kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int folder = limefs_tree_folder(fs, node);
    if (folder < 0)
        return folder;
    int err = unlinkat(folder, name, 0) == 0 ? 0 : -errno;
    close(folder);
    return err;
}

int limefs_rename(struct limefs *fs, uint64_t parent, const char *name, uint64_t new_parent,
                  const char *new_name, unsigned flags)
{
    enum limefs_kind kind, new_kind;
    struct limefs_node *from = parent_of(fs, parent, &kind);
    struct limefs_node *to = parent_of(fs, new_parent, &new_kind);
    if (kind == LIMEFS_CONTAINER || new_kind == LIMEFS_CONTAINER) {
        if (kind != new_kind)
            return -EXDEV; /* mv copies, then */
        say(fs, from, "rename", name,
            "records have numbers for names; setfattr -n user.lime.type changes the type");
        return -EPERM;
    }
    if (kind != LIMEFS_DIRECTORY || new_kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int folder = limefs_tree_folder(fs, from), new_folder = limefs_tree_folder(fs, to);
    int err = folder < 0 ? folder : new_folder < 0 ? new_folder : 0;
    if (!err && renameat2(folder, name, new_folder, new_name, flags) != 0)
        err = -errno;
    if (!err)
        err = limefs_node_moved(fs, from, name, to, new_name, flags & RENAME_EXCHANGE);
    if (folder >= 0)
        close(folder);
    if (new_folder >= 0)
        close(new_folder);
    return err;
}

/* ---- attributes ---- */

enum {
    TIMES = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
            FUSE_SET_ATTR_MTIME_NOW,
};

static struct timespec time_to_set(int which, int value, int now, const struct timespec *time)
{
    struct timespec set = {0, which & now ? UTIME_NOW : UTIME_OMIT};
    return which & value && !(which & now) ? *time : set;
}

static void times_to_set(int which, const struct stat *st, struct timespec times[2])
{
    times[0] = time_to_set(which, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, &st->st_atim);
    times[1] = time_to_set(which, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, &st->st_mtim);
}

/* A kernel that caches what is written keeps the time of change itself, and tells it as any
 * other: when a file that is open for writing is closed, or a program that may write to it, and
 * does not own it, sets it to now. Of the first all is taken but times of access, which are for
 * the owner to set; of the second, that it is now. True: with the daemon's own rights. */
static bool is_of_writing(const struct limefs_file *file, struct timespec times[2])
{
    bool opened = file && (file->writes || file->target);
    if (!opened)
        times[0].tv_nsec = times[1].tv_nsec = UTIME_NOW;
    else if (times[0].tv_nsec != UTIME_NOW)
        times[0].tv_nsec = UTIME_OMIT;
    return opened;
}

static bool may_be_of_writing(int err, int which)
{
    return (err == -EPERM || err == -EACCES) && which & FUSE_SET_ATTR_CTIME;
}

/* fd may be O_PATH. */
static int set_times(const struct limefs_file *file, int fd, int which, const struct stat *st)
{
    struct timespec times[2];
    char path[LIMEFILE_FD_PATH_MAX];
    times_to_set(which, st, times);
    limefile_fd_path(fd, path);
    int err = utimensat(AT_FDCWD, path, times, 0) == 0 ? 0 : -errno;
    if (!may_be_of_writing(err, which))
        return err;
    bool own = is_of_writing(file, times);
    if (own)
        limefs_own_begin();
    err = utimensat(AT_FDCWD, path, times, 0) == 0 ? 0 : -errno;
    if (own)
        limefs_own_end();
    return err;
}

static int set_mode(int fd, int which, const struct stat *st)
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

/* By a descriptor that its opener may write to, or else if the caller may. */
static int set_size(const struct limefs_file *file, int fd, off_t size)
{
    bool opened = file && file->writes;
    int to = opened ? fd : limefile_reopen(fd, O_WRONLY | O_NONBLOCK);
    if (to < 0)
        return to;
    int err = ftruncate(to, size) == 0 ? 0 : -errno;
    if (!opened)
        close(to);
    return err;
}

/* Mode and owner of a record are the container's. */
static bool asks_for_others(const struct stat *now, int which, const struct stat *st)
{
    return (which & FUSE_SET_ATTR_MODE && (st->st_mode & 0666) != (now->st_mode & 0666)) ||
           (which & FUSE_SET_ATTR_UID && st->st_uid != now->st_uid) ||
           (which & FUSE_SET_ATTR_GID && st->st_gid != now->st_gid);
}

static int set_record_times(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                            const struct limefs_file *file, int which, const struct stat *st)
{
    struct timespec times[2];
    times_to_set(which, st, times);
    int err = limefs_record_set_times(fs, view, ordinal, times);
    if (!may_be_of_writing(err, which))
        return err;
    bool own = is_of_writing(file, times);
    if (own)
        limefs_own_begin();
    err = limefs_record_set_times(fs, view, ordinal, times);
    if (own)
        limefs_own_end();
    return err;
}

static int set_record(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      const struct limefs_file *file, int which, const struct stat *st)
{
    struct stat now = limefs_view_stat(fs, view);
    char number[32];
    snprintf(number, sizeof number, "record %llu", (unsigned long long)ordinal);
    /* Those of a new one mean as little as the mode with which it was made. */
    if (asks_for_others(&now, which, st) && !limefs_record_is_new(view, ordinal)) {
        say(fs, view->node, "change mode or owner of", number,
            "they are the container's: change those");
        return -EPERM;
    }
    int err = limefs_view_pin(fs, view);
    if (err)
        return err;
    if (which & FUSE_SET_ATTR_SIZE)
        err = limefs_record_resize(fs, view, ordinal, (uint64_t)st->st_size, false);
    if (!err && which & TIMES)
        err = set_record_times(fs, view, ordinal, file, which, st);
    limefs_view_unpin(fs, view);
    return err;
}

/* A file that is open may have lost its name. */
static int hold(struct limefs *fs, struct limefs_node *node)
{
    int fd = node->kind == LIMEFS_OTHER ? limefs_file_dup(fs, node) : -ENOENT;
    return fd < 0 ? limefs_tree_hold(fs, node) : fd;
}

/* By our own doing perhaps: its new file may have the old attributes. */
static bool was_replaced(struct limefs *fs, struct limefs_node *node, int fd)
{
    struct stat set, named;
    return fstat(fd, &set) == 0 && limefs_tree_stat(fs, node, &named) == 0 &&
           (set.st_dev != named.st_dev || set.st_ino != named.st_ino);
}

static int set_node(struct limefs *fs, struct limefs_node *node, struct limefs_file *file,
                    int which, const struct stat *st)
{
    bool opened = file && file->fd >= 0;
    int fd = opened ? file->fd : hold(fs, node);
    if (fd < 0)
        return fd;
    struct stat mode = *st;
    struct stat now;
    if (node->kind == LIMEFS_CONTAINER && fstat(fd, &now) == 0) /* x bits are ours */
        mode.st_mode = (now.st_mode & 07111) | (st->st_mode & 0666);
    int err = set_mode(fd, which, &mode);
    if (!err && which & FUSE_SET_ATTR_SIZE)
        err = set_size(opened ? file : NULL, fd, st->st_size);
    if (!err && which & TIMES)
        err = set_times(file, fd, which, st);
    if (!err && node->kind == LIMEFS_CONTAINER && was_replaced(fs, node, fd))
        err = -ESTALE; /* the kernel does it once more, to the one that is there now */
    else if (!err && fstat(fd, &now) == 0)
        limefs_node_touched(fs, node, &now);
    if (!opened)
        close(fd);
    return err;
}

int limefs_set_attributes(struct limefs *fs, uint64_t id, struct limefs_file *file, int which,
                          const struct stat *st)
{
    uint64_t ordinal;
    struct limefs_node *node = limefs_inode_node(fs, id);
    if (node && node->kind != LIMEFS_OTHER && which & FUSE_SET_ATTR_SIZE)
        return -EISDIR;
    if (node)
        return set_node(fs, node, file, which, st);
    struct limefs_view *view = limefs_inode_view(fs, id, &ordinal);
    return view ? set_record(fs, view, ordinal, file, which, st) : -ESTALE;
}
