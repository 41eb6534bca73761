/* namespace.c - creates, removes and renames records, containers and other files */
#define _GNU_SOURCE
#include "namespace.h"
#include "credentials.h"
#include "descriptor.h"
#include "exports.h"
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
    CREATE_TRIES = 8, /* tries while other processes create and remove the same name */
    NEW_FILE = O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
};

static void log_failure(struct limefs *fs, const struct limefs_node *node, const char *action,
                        const char *name, const char *reason)
{
    char path[PATH_MAX];
    limefs_log(LOG_ERR, "%s: %s %s: %s", limefs_tree_display_path(fs, node, path, sizeof path),
               action, name, reason);
}

static struct limefs_node *get_parent(struct limefs *fs, uint64_t id,
                                      enum limefs_node_kind *kind)
{
    struct limefs_node *node = limefs_inode_find_node(fs, id);
    *kind = node ? node->kind : LIMEFS_PLAIN;
    return node;
}

/* ---- records ---- */

static int create_record(struct limefs *fs, struct limefs_node *container, const char *name,
                         struct limefs_file **file, struct fuse_entry_param *entry)
{
    struct limefs_snapshot *snap;
    struct limefs_target *target;
    int err = limefs_snapshot_get_current(fs, container, &snap);
    if (err)
        return err;
    err = limefs_record_append(fs, snap, name, &target);
    if (err) {
        limefs_snapshot_unpin(fs, snap);
        return err;
    }
    err = limefs_file_open_new_record(fs, snap, target, file); /* takes over the pin */
    if (!err)
        limefs_entry_record(fs, snap, &(*file)->record, entry);
    return err;
}

/* Returns -EROFS if name is that of an export, because exports cannot be changed; else err. */
static int reject_export(struct limefs *fs, struct limefs_node *container, const char *name,
                         int err)
{
    return limefs_export_exists(fs, container, name) ? -EROFS : err;
}

static int remove_record(struct limefs *fs, struct limefs_node *container, const char *name)
{
    struct limefs_snapshot *snap;
    int err = limefs_snapshot_get_current(fs, container, &snap);
    if (err)
        return err;
    err = limefs_record_remove(fs, snap, name);
    limefs_snapshot_unpin(fs, snap);
    return err == LIMEFILE_E_NO_RECORD ? reject_export(fs, container, name, err) : err;
}

/* ---- files of the source tree ---- */

/* Opens the file that was just created as fd. Fills the entry from fd, because another process
 * may have renamed the file already. Takes ownership of fd. */
static int open_new(struct limefs *fs, struct limefs_node *directory, const char *name, int fd,
                    int flags, struct limefs_file **file, struct fuse_entry_param *entry)
{
    struct stat st;
    int err =
        fstat(fd, &st) == 0 ? limefs_entry_created(fs, directory, name, &st, entry) : -errno;
    if (err) {
        close(fd);
        return err;
    }
    err =
        limefs_file_open_new_plain(fs, limefs_inode_find_node(fs, entry->ino), fd, flags, file);
    if (err)
        limefs_forget(fs, entry->ino, 1);
    return err;
}

/* Opens a file that another process created after the kernel's lookup. Returns -ESTALE, which
 * makes the kernel look the name up again, if the file is not regular. */
static int open_existing(struct limefs *fs, struct limefs_node *directory, const char *name,
                         int flags, struct limefs_file **file, struct fuse_entry_param *entry)
{
    bool keep;
    int err = limefs_entry_lookup(fs, limefs_inode_node_id(directory), name, entry);
    if (err)
        return err;
    err = S_ISREG(entry->attr.st_mode) ? limefs_file_open(fs, entry->ino, flags, file, &keep)
                                       : -ESTALE;
    if (err)
        limefs_forget(fs, entry->ino, 1);
    return err;
}

/* Creates a file, also open for reading: the kernel reads pages that are written in part. */
static int create_plain_file(struct limefs *fs, struct limefs_node *directory, const char *name,
                             mode_t mode)
{
    int dirfd = limefs_tree_open_dir(fs, directory);
    if (dirfd < 0)
        return dirfd;
    int fd = openat(dirfd, name, O_RDWR | NEW_FILE, mode & 07777);
    int err = fd < 0 ? -errno : fd;
    close(dirfd);
    return err;
}

static int open_or_create_plain(struct limefs *fs, struct limefs_node *directory,
                                const char *name, mode_t mode, int flags,
                                struct limefs_file **file, struct fuse_entry_param *entry)
{
    int err = -ENOENT;
    for (int i = 0; i < CREATE_TRIES && err == -ENOENT; i++) {
        int fd = create_plain_file(fs, directory, name, mode);
        if (fd >= 0)
            return open_new(fs, directory, name, fd, flags, file, entry);
        if (fd != -EEXIST || flags & O_EXCL)
            return fd;
        err = open_existing(fs, directory, name, flags, file, entry);
    }
    return err;
}

int limefs_create(struct limefs *fs, uint64_t parent, const char *name, mode_t mode, int flags,
                  struct limefs_file **file, struct fuse_entry_param *entry)
{
    enum limefs_node_kind kind;
    struct limefs_node *node = get_parent(fs, parent, &kind);
    if (kind == LIMEFS_CONTAINER)
        return create_record(fs, node, name, file, entry);
    if (kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    return open_or_create_plain(fs, node, name, mode, flags, file, entry);
}

/* Opens a directory in which files other than records can be created. */
static int open_source_dir(struct limefs *fs, uint64_t id)
{
    enum limefs_node_kind kind;
    struct limefs_node *node = get_parent(fs, id, &kind);
    return kind == LIMEFS_DIRECTORY ? limefs_tree_open_dir(fs, node) : -EPERM;
}

int limefs_make_symlink(struct limefs *fs, uint64_t parent, const char *name,
                        const char *target, struct fuse_entry_param *entry)
{
    int dirfd = open_source_dir(fs, parent);
    if (dirfd < 0)
        return dirfd;
    int err = symlinkat(target, dirfd, name) == 0 ? 0 : -errno;
    close(dirfd);
    return err ? err : limefs_entry_lookup(fs, parent, name, entry);
}

int limefs_link(struct limefs *fs, uint64_t id, uint64_t parent, const char *name,
                struct fuse_entry_param *entry)
{
    enum limefs_node_kind kind;
    char path[LIMEFILE_FD_PATH_MAX];
    struct limefs_node *node = get_parent(fs, parent, &kind),
                       *file = limefs_inode_find_node(fs, id);
    if (kind != LIMEFS_DIRECTORY || !file || file->kind != LIMEFS_PLAIN)
        return -EPERM;
    int dirfd = limefs_tree_open_dir(fs, node), fd = limefs_tree_open_node(fs, file);
    int err = dirfd < 0 ? dirfd : fd < 0 ? fd : 0;
    limefile_fd_path(fd, path);
    struct stat st;
    if (!err && linkat(AT_FDCWD, path, dirfd, name, AT_SYMLINK_FOLLOW) != 0)
        err = -errno;
    if (!err && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode)) /* only the link's ctime differs */
        limefs_node_note_attributes(fs, file, &st);
    if (fd >= 0)
        close(fd);
    if (dirfd >= 0)
        close(dirfd);
    return err ? err : limefs_entry_lookup(fs, parent, name, entry);
}

/* ---- containers ---- */

/* Syncs a new file and its directory. Opens the directory with the daemon's rights, because the
 * user may have permission to create files in it, but not to read it. */
static int sync_created(int dirfd, int fd)
{
    limefs_daemon_creds_enter();
    int readable = limefile_reopen(dirfd, O_RDONLY | O_DIRECTORY);
    limefs_daemon_creds_leave();
    if (readable < 0)
        return readable;
    int err = fsync(fd) == 0 && fsync(readable) == 0 ? 0 : -errno;
    close(readable);
    return err;
}

/* Removes the new file, unless another file has its name by now. */
static void remove_created(int dirfd, const char *name, int fd)
{
    struct stat created, named;
    if (fstat(fd, &created) == 0 && fstatat(dirfd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        created.st_dev == named.st_dev && created.st_ino == named.st_ino)
        unlinkat(dirfd, name, 0);
}

static int create_container(struct limefs *fs, struct limefs_node *directory, const char *name,
                            mode_t mode)
{
    struct stat st;
    int dirfd = limefs_tree_open_dir(fs, directory);
    if (dirfd < 0)
        return dirfd;
    int fd = openat(dirfd, name, O_WRONLY | NEW_FILE, mode & 0666);
    int err = fd < 0 ? -errno : sync_created(dirfd, fd);
    if (!err && fstat(fd, &st) != 0)
        err = -errno;
    if (!err)
        err = limefs_node_note_mkdir(fs, directory, name, &st);
    if (err && fd >= 0)
        remove_created(dirfd, name, fd);
    if (fd >= 0)
        close(fd);
    close(dirfd);
    return err;
}

static bool is_container_name(const struct limefs *fs, const char *name)
{
    static const char ending[] = ".lime";
    size_t n = strlen(name), len = sizeof ending - 1;
    return fs->options.mkdir_container || (n > len && strcmp(name + n - len, ending) == 0);
}

static int create_source_dir(struct limefs *fs, struct limefs_node *directory, const char *name,
                             mode_t mode)
{
    int dirfd = limefs_tree_open_dir(fs, directory);
    if (dirfd < 0)
        return dirfd;
    int err = mkdirat(dirfd, name, mode & 07777) == 0 ? 0 : -errno;
    close(dirfd);
    return err;
}

int limefs_make_directory(struct limefs *fs, uint64_t parent, const char *name, mode_t mode,
                          struct fuse_entry_param *entry)
{
    enum limefs_node_kind kind;
    struct limefs_node *node = get_parent(fs, parent, &kind);
    if (kind != LIMEFS_DIRECTORY) {
        if (node)
            log_failure(fs, node, "mkdir", name, "a container can hold records only");
        return -EPERM;
    }
    int err = is_container_name(fs, name) ? create_container(fs, node, name, mode)
                                          : create_source_dir(fs, node, name, mode);
    return err ? err : limefs_entry_lookup(fs, parent, name, entry);
}

int limefs_make_special(struct limefs *fs, uint64_t parent, const char *name, mode_t mode,
                        dev_t dev, struct fuse_entry_param *entry)
{
    int dirfd = open_source_dir(fs, parent);
    if (dirfd < 0)
        return dirfd;
    int err = mknodat(dirfd, name, mode, dev) == 0 ? 0 : -errno;
    close(dirfd);
    return err ? err : limefs_entry_lookup(fs, parent, name, entry);
}

static int check_empty(struct limefs *fs, struct limefs_node *directory, int dirfd,
                       const char *name, const struct limefs_node *child)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    if (!limefs_node_is_file(fs, child, &st))
        return -ESTALE;
    if (st.st_size == 0)
        return 0;
    log_failure(fs, directory, "rmdir", name,
                "the container is not empty; remove its records first");
    return -ENOTEMPTY;
}

/* Removes an empty container or, as rmdir(2) does, another empty directory. */
int limefs_remove_directory(struct limefs *fs, uint64_t parent, const char *name)
{
    enum limefs_node_kind kind;
    struct fuse_entry_param entry;
    struct limefs_node *node = get_parent(fs, parent, &kind);
    if (kind == LIMEFS_CONTAINER)
        return reject_export(fs, node, name, -ENOTDIR);
    if (kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int err = limefs_entry_lookup(fs, parent, name, &entry);
    if (err)
        return err;
    struct limefs_node *child = limefs_inode_find_node(fs, entry.ino);
    bool is_container = child && child->kind == LIMEFS_CONTAINER;
    int dirfd = limefs_tree_open_dir(fs, node);
    err = dirfd < 0 ? dirfd : is_container ? check_empty(fs, node, dirfd, name, child) : 0;
    if (!err && unlinkat(dirfd, name, is_container ? 0 : AT_REMOVEDIR) != 0)
        err = -errno;
    if (dirfd >= 0)
        close(dirfd);
    limefs_forget(fs, entry.ino, 1);
    if (!err)
        limefs_node_note_rmdir(fs, node, name);
    return err;
}

int limefs_remove(struct limefs *fs, uint64_t parent, const char *name)
{
    enum limefs_node_kind kind;
    struct limefs_node *node = get_parent(fs, parent, &kind);
    if (kind == LIMEFS_CONTAINER)
        return remove_record(fs, node, name);
    if (kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int dirfd = limefs_tree_open_dir(fs, node);
    if (dirfd < 0)
        return dirfd;
    struct stat st = {0};
    bool has_stat = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    int err = unlinkat(dirfd, name, 0) == 0 ? 0 : -errno;
    close(dirfd);
    struct limefile_identity stamp = limefile_identify(&st);
    if (!err && has_stat && st.st_nlink < 2)
        limefs_node_forget_file(fs, &stamp);
    return err;
}

static void update_node_name(struct limefs *fs, struct limefs_node *directory, int dirfd,
                             const char *name)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        limefs_node_note_link(fs, directory, name, &st);
}

/* True for a container that is not empty: like other directories, it must not be replaced. */
static bool is_nonempty_container(struct limefs *fs, struct limefs_node *directory,
                                  const char *name, const struct stat *st)
{
    limefs_lock(&fs->lock);
    const struct limefs_node *node = limefs_node_find_child(fs, directory, name);
    bool is_container = node && node->kind == LIMEFS_CONTAINER;
    limefs_unlock(&fs->lock);
    return is_container && S_ISREG(st->st_mode) && st->st_size > 0;
}

/* Returns -ENOTEMPTY if the rename would replace a container that is not empty. A rename
 * between two names of one file replaces nothing. */
static int check_replaceable(struct limefs *fs, int dirfd, const char *name,
                             struct limefs_node *to, int new_dirfd, const char *new_name)
{
    struct stat st, replaced;
    if (fstatat(new_dirfd, new_name, &replaced, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0; /* renameat2() reports any error */
    struct limefile_identity one = limefile_identify(&st), other = limefile_identify(&replaced);
    if (limefile_identity_same_file(&one, &other))
        return 0;
    return is_nonempty_container(fs, to, new_name, &replaced) ? -ENOTEMPTY : 0;
}

int limefs_rename(struct limefs *fs, uint64_t parent, const char *name, uint64_t new_parent,
                  const char *new_name, unsigned flags)
{
    enum limefs_node_kind kind, new_kind;
    struct limefs_node *from = get_parent(fs, parent, &kind);
    struct limefs_node *to = get_parent(fs, new_parent, &new_kind);
    if (kind == LIMEFS_CONTAINER || new_kind == LIMEFS_CONTAINER) {
        if (kind == LIMEFS_CONTAINER && reject_export(fs, from, name, 0) == -EROFS)
            return -EROFS;
        if (kind != new_kind)
            return -EXDEV; /* after this error, mv(1) copies */
        log_failure(fs, from, "rename", name,
                    "a record has no free name; set its type with setfattr -n user.lime.type");
        return -EPERM;
    }
    if (kind != LIMEFS_DIRECTORY || new_kind != LIMEFS_DIRECTORY)
        return -ENOTDIR;
    int dirfd = limefs_tree_open_dir(fs, from), new_dirfd = limefs_tree_open_dir(fs, to);
    int err = dirfd < 0 ? dirfd : new_dirfd < 0 ? new_dirfd : 0;
    if (!err && !(flags & (RENAME_EXCHANGE | RENAME_NOREPLACE)))
        err = check_replaceable(fs, dirfd, name, to, new_dirfd, new_name);
    if (!err && renameat2(dirfd, name, new_dirfd, new_name, flags) != 0)
        err = -errno;
    if (!err)
        err = limefs_node_note_rename(fs, from, name, to, new_name, flags & RENAME_EXCHANGE);
    if (!err)
        update_node_name(fs, to, new_dirfd, new_name);
    if (!err && flags & RENAME_EXCHANGE)
        update_node_name(fs, from, dirfd, name);
    if (dirfd >= 0)
        close(dirfd);
    if (new_dirfd >= 0)
        close(new_dirfd);
    return err;
}
