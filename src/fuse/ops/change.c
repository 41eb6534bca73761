/* change.c - creates, removes and renames records, containers and other files */
#define _GNU_SOURCE
#include "change.h"
#include "caller.h"
#include "descriptor.h"
#include "faces.h"
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
    CREATE_TRIES = 8, /* while other processes create and remove the same name */
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
    err = limefs_file_of_record(fs, view, target, file); /* takes over the pin */
    if (!err)
        limefs_entry_record(fs, view, &(*file)->record, entry);
    return err;
}

/* Returns -EROFS if that is the name of an export, which cannot be changed, else err. */
static int refused(struct limefs *fs, struct limefs_node *container, const char *name, int err)
{
    return limefs_face_is_there(fs, container, name) ? -EROFS : err;
}

static int remove_record(struct limefs *fs, struct limefs_node *container, const char *name)
{
    struct limefs_view *view;
    int err = limefs_view_current(fs, container, &view);
    if (err)
        return err;
    err = limefs_record_remove(fs, view, name);
    limefs_view_unpin(fs, view);
    return err == LIMEFILE_E_NO_RECORD ? refused(fs, container, name, err) : err;
}

/* ---- files of the source tree ---- */

/* Opens the file that was just created as fd, and fills the entry from fd: another process may
 * have renamed it already. Takes ownership of fd. */
static int open_made(struct limefs *fs, struct limefs_node *directory, const char *name, int fd,
                     int flags, struct limefs_file **file, struct fuse_entry_param *entry)
{
    struct stat st;
    int err = fstat(fd, &st) == 0 ? limefs_entry_made(fs, directory, name, &st, entry) : -errno;
    if (err) {
        close(fd);
        return err;
    }
    err = limefs_file_of_plain(fs, limefs_inode_node(fs, entry->ino), fd, flags, file);
    if (err)
        limefs_forget(fs, entry->ino, 1);
    return err;
}

/* Opens a file that another process created after the kernel's look-up. If it is a directory or
 * a link, -ESTALE makes the kernel look it up again. */
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

/* Opens the new file for reading, too: the kernel reads pages that a program writes in part. */
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
    for (int i = 0; i < CREATE_TRIES && err == -ENOENT; i++) {
        int fd = make_plain(fs, directory, name, mode);
        if (fd >= 0)
            return open_made(fs, directory, name, fd, flags, file, entry);
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

/* Opens a directory in which files other than records can be created. */
static int open_folder(struct limefs *fs, uint64_t id)
{
    enum limefs_kind kind;
    struct limefs_node *node = parent_of(fs, id, &kind);
    return kind == LIMEFS_DIRECTORY ? limefs_tree_folder(fs, node) : -EPERM;
}

int limefs_make_link(struct limefs *fs, uint64_t parent, const char *name, const char *target,
                     struct fuse_entry_param *entry)
{
    int folder = open_folder(fs, parent);
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
    struct stat st;
    if (!err && linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) != 0)
        err = -errno;
    if (!err && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) /* only its ctime has changed */
        limefs_node_touched(fs, file, &st);
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    return err ? err : limefs_entry(fs, parent, name, entry);
}

/* ---- containers ---- */

/* Syncs a new file and its directory. The directory is opened with the daemon's rights: the
 * caller may create files in it without permission to read it. */
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

/* Removes the new file, unless another file has its name by now. */
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

static bool names_container(const struct limefs *fs, const char *name)
{
    static const char ending[] = ".lime";
    size_t n = strlen(name), len = sizeof ending - 1;
    return fs->options.mkdir_container || (n > len && strcmp(name + n - len, ending) == 0);
}

static int make_folder(struct limefs *fs, struct limefs_node *directory, const char *name,
                       mode_t mode)
{
    int folder = limefs_tree_folder(fs, directory);
    if (folder < 0)
        return folder;
    int err = mkdirat(folder, name, mode & 07777) == 0 ? 0 : -errno;
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
                "this is a container, which holds records, no directories");
        return -EPERM;
    }
    int err = names_container(fs, name) ? make_container(fs, node, name, mode)
                                        : make_folder(fs, node, name, mode);
    return err ? err : limefs_entry(fs, parent, name, entry);
}

int limefs_make_special(struct limefs *fs, uint64_t parent, const char *name, mode_t mode,
                        dev_t dev, struct fuse_entry_param *entry)
{
    int folder = open_folder(fs, parent);
    if (folder < 0)
        return folder;
    int err = mknodat(folder, name, mode, dev) == 0 ? 0 : -errno;
    close(folder);
    return err ? err : limefs_entry(fs, parent, name, entry);
}

/* Returns 0 if the container of the node `child` is empty, -ENOTEMPTY, or another -errno. */
static int is_empty(struct limefs *fs, struct limefs_node *directory, int folder,
                    const char *name, const struct limefs_node *child)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    if (!limefs_node_is(fs, child, &st))
        return -ESTALE;
    if (st.st_size == 0)
        return 0;
    say(fs, directory, "rmdir", name,
        "the container holds records; remove them first, or the file");
    return -ENOTEMPTY;
}

/* Removes an empty container; passes rmdir(2) of other directories through. */
int limefs_remove_directory(struct limefs *fs, uint64_t parent, const char *name)
{
    enum limefs_kind kind;
    struct fuse_entry_param entry;
    struct limefs_node *node = parent_of(fs, parent, &kind);
    if (kind == LIMEFS_CONTAINER)
        return refused(fs, node, name, -ENOTDIR);
    if (kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int err = limefs_entry(fs, parent, name, &entry);
    if (err)
        return err;
    struct limefs_node *child = limefs_inode_node(fs, entry.ino);
    bool container = child && child->kind == LIMEFS_CONTAINER;
    int folder = limefs_tree_folder(fs, node);
    err = folder < 0 ? folder : container ? is_empty(fs, node, folder, name, child) : 0;
    if (!err && unlinkat(folder, name, container ? 0 : AT_REMOVEDIR) != 0)
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
    struct stat st = {0};
    bool known = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    int err = unlinkat(folder, name, 0) == 0 ? 0 : -errno;
    close(folder);
    struct limefile_identity stamp = limefile_identity_of(&st);
    if (!err && known && st.st_nlink < 2)
        limefs_node_unfile(fs, &stamp);
    return err;
}

/* Records the new name of a file that the kernel may know by another one. */
static void tell_name(struct limefs *fs, struct limefs_node *directory, int folder,
                      const char *name)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        limefs_node_named(fs, directory, name, &st);
}

/* True for a container that is not empty: as with a directory, no rename may replace it. */
static bool is_full(struct limefs *fs, struct limefs_node *directory, const char *name,
                    const struct stat *st)
{
    limefs_lock(&fs->lock);
    const struct limefs_node *node = limefs_node_find(fs, directory, name);
    bool container = node && node->kind == LIMEFS_CONTAINER;
    limefs_unlock(&fs->lock);
    return container && S_ISREG(st->st_mode) && st->st_size > 0;
}

/* Returns -ENOTEMPTY if the rename would replace a container that is not empty. A rename
 * between two names of one file replaces nothing. */
static int check_makes_way(struct limefs *fs, int folder, const char *name,
                           struct limefs_node *to, int new_folder, const char *new_name)
{
    struct stat st, there;
    if (fstatat(new_folder, new_name, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0; /* renameat2() reports any error */
    struct limefile_identity one = limefile_identity_of(&st),
                             other = limefile_identity_of(&there);
    return is_full(fs, to, new_name, &there) && !limefile_identity_same_file(&one, &other)
               ? -ENOTEMPTY
               : 0;
}

int limefs_rename(struct limefs *fs, uint64_t parent, const char *name, uint64_t new_parent,
                  const char *new_name, unsigned flags)
{
    enum limefs_kind kind, new_kind;
    struct limefs_node *from = parent_of(fs, parent, &kind);
    struct limefs_node *to = parent_of(fs, new_parent, &new_kind);
    if (kind == LIMEFS_CONTAINER || new_kind == LIMEFS_CONTAINER) {
        if (kind == LIMEFS_CONTAINER && refused(fs, from, name, 0) == -EROFS)
            return -EROFS;
        if (kind != new_kind)
            return -EXDEV; /* mv(1) then copies */
        say(fs, from, "rename", name,
            "records have numbers for names; setfattr -n user.lime.type changes the type");
        return -EPERM;
    }
    if (kind != LIMEFS_DIRECTORY || new_kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int folder = limefs_tree_folder(fs, from), new_folder = limefs_tree_folder(fs, to);
    int err = folder < 0 ? folder : new_folder < 0 ? new_folder : 0;
    if (!err && !(flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)))
        err = check_makes_way(fs, folder, name, to, new_folder, new_name);
    if (!err && renameat2(folder, name, new_folder, new_name, flags) != 0)
        err = -errno;
    if (!err)
        err = limefs_node_moved(fs, from, name, to, new_name, flags & RENAME_EXCHANGE);
    if (!err)
        tell_name(fs, to, new_folder, new_name);
    if (!err && flags & RENAME_EXCHANGE)
        tell_name(fs, from, folder, name);
    if (folder >= 0)
        close(folder);
    if (new_folder >= 0)
        close(new_folder);
    return err;
}
