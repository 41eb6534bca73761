/* tree.c - open the files below the source */
#define _GNU_SOURCE
#include "tree.h"
#include "credentials.h"
#include "descriptor.h"
#include "limefile.h"
#include "limegauge.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Puts a name before the path at `at`. Returns the new path's start; NULL: it does not fit. */
static char *prepend(char *at, const char *begin, const char *name)
{
    size_t len = strlen(name);
    if ((size_t)(at - begin) < len + 1)
        return NULL;
    if (*at)
        *--at = '/';
    at -= len;
    memcpy(at, name, len);
    return at;
}

/* The caller holds fs->lock, because other requests rename and free nodes. */
static const char *build_path(const struct limefs_node *node, char *buf, size_t cap)
{
    char *at = buf + cap - 1;
    *at = '\0';
    for (; at && node->parent; node = node->parent)
        at = prepend(at, buf, node->name);
    if (at && *at == '\0')
        return ".";
    return at;
}

const char *limefs_tree_display_path(struct limefs *fs, const struct limefs_node *node,
                                     char *buf, size_t cap)
{
    if (node == fs->inodes.root)
        return fs->source;
    limefs_lock(&fs->lock);
    const char *path = build_path(node, buf, cap);
    if (!path && cap > 0) { /* the path is too long; use the name alone */
        snprintf(buf, cap, "%s", node->name);
        path = buf;
    }
    limefs_unlock(&fs->lock);
    return path;
}

/* The place of a node's file; a copy, because other threads may move the node. */
struct location {
    char path[PATH_MAX], name[NAME_MAX + 1]; /* path of its directory, and name in it */
    struct limefile_identity dir;
};

static int get_location(struct limefs *fs, const struct limefs_node *node, struct location *loc)
{
    char buf[PATH_MAX];
    limefs_lock(&fs->lock);
    const struct limefs_node *parent = node->parent;
    const char *path = build_path(parent, buf, sizeof buf);
    bool fits = path && strlen(node->name) <= NAME_MAX;
    if (fits) {
        strcpy(loc->path, path);
        strcpy(loc->name, node->name);
        loc->dir = parent->stamp;
    }
    limefs_unlock(&fs->lock);
    return fits ? 0 : -ENAMETOOLONG;
}

/* Returns fd, or closes it and returns -errno: -ESTALE if it is not of the expected file. */
static int check_identity(int fd, const struct limefile_identity *expected)
{
    struct stat st;
    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
    int err = fstat(fd, &st) == 0 ? 0 : -errno;
    struct limefile_identity stamp = limefile_identify(&st);
    if (!err && !limefile_identity_same_file(&stamp, expected))
        err = -ESTALE;
    if (!err)
        return fd;
    close(fd);
    return err;
}

/* Opens a path with the daemon's own rights. dir and the result are O_PATH descriptors. */
static int open_as_daemon(int dir, const char *path, int flags)
{
    int fd;
    if (strcmp(path, ".") == 0) {
        fd = fcntl(dir, F_DUPFD_CLOEXEC, 0);
        return fd < 0 ? -errno : fd;
    }
    limefs_daemon_creds_enter();
    fd = limefile_open_beneath(dir, path, O_PATH | flags);
    limefs_daemon_creds_leave();
    return fd;
}

/* Opens the path of the node's current name. -ESTALE: it leads to another file. */
static int open_node_path(struct limefs *fs, const struct limefs_node *node, int flags)
{
    char buf[PATH_MAX];
    limefs_lock(&fs->lock);
    const char *path = fs->container ? fs->container : build_path(node, buf, sizeof buf);
    struct limefile_identity stamp = node->stamp;
    limefs_unlock(&fs->lock);
    if (!path)
        return -ENAMETOOLONG;
    return check_identity(open_as_daemon(fs->source_fd, path, flags), &stamp);
}

int limefs_tree_open_node(struct limefs *fs, struct limefs_node *node)
{
    int fd = open_node_path(fs, node, 0);
    for (unsigned i = 0; fd == -ESTALE && limefs_node_use_name(fs, node, i); i++)
        fd = open_node_path(fs, node, 0);
    return fd;
}

int limefs_tree_open_dir(struct limefs *fs, const struct limefs_node *node)
{
    return open_node_path(fs, node, O_DIRECTORY);
}

/* Opens the directory of the node's file, and gets the file's name in it. */
static int open_parent_dir(struct limefs *fs, const struct limefs_node *node,
                           struct location *loc)
{
    int err = get_location(fs, node, loc);
    if (err)
        return err;
    return check_identity(open_as_daemon(fs->source_fd, loc->path, O_DIRECTORY), &loc->dir);
}

int limefs_tree_open_parent(struct limefs *fs, const struct limefs_node *node)
{
    struct location loc;
    return fs->container ? open_as_daemon(fs->source_fd, ".", O_DIRECTORY)
                         : open_parent_dir(fs, node, &loc);
}

int limefs_tree_open_name(struct limefs *fs, const struct limefs_node *node)
{
    struct location loc;
    if (node == fs->inodes.root)
        return open_as_daemon(fs->source_fd, fs->container ? fs->container : ".", 0);
    int dir = open_parent_dir(fs, node, &loc);
    if (dir < 0)
        return dir;
    int fd = open_as_daemon(dir, loc.name, 0);
    close(dir);
    return fd;
}

int limefs_tree_stat(struct limefs *fs, const struct limefs_node *node, struct stat *st)
{
    int fd = limefs_tree_open_name(fs, node);
    if (fd < 0)
        return fd;
    int err = fstat(fd, st) == 0 ? 0 : -errno;
    close(fd);
    return err;
}

static_assert((int)LIMEFS_TREE_DETECT_BYTES == (int)LIMEFILE_HEADER_BYTES, "bytes of a header");

/* Returns 1 if an adapter can show the file as a container, 0 if not, or -errno. */
static int has_adapter(int fd, const unsigned char *raw, size_t n)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    return limefile_gauge_detect(raw, n, (uint64_t)st.st_size) == LIMEFILE_GAUGE_NONE
               ? 0
               : limefile_gauge_adapter_supports(fd);
}

/* True if an open may succeed later, when a lease ends, or descriptors or memory are free. */
static bool may_open_later(int err)
{
    return err == -EAGAIN || err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* Returns 1 if the file begins with a valid header or, if `formats`, has an adapter; 0 if not,
 * or if it cannot be read; -errno if a later try may succeed. Sets found->is_certain. seen: the
 * time before found->st was read. The result must not depend on the caller's rights, so the
 * daemon reads with its own. The caller learns nothing else about the contents. */
static int detect_container(bool formats, int file, const struct timespec *seen,
                            struct limefs_tree_entry *found)
{
    struct limefile_identity stamp = limefile_identify(&found->st);
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    struct limefile_fd source;
    limefs_daemon_creds_enter();
    int fd = limefile_reopen(file, O_RDONLY | O_NONBLOCK);
    limefs_daemon_creds_leave();
    if (fd < 0)
        return may_open_later(fd) ? fd : 0;
    limefile_fd_init(&source, fd);
    bool being_written = limefile_is_being_written(fd, &stamp.ctime);
    ssize_t got = limefile_read_full(&source.source, raw, sizeof raw, 0);
    int match = got == sizeof raw && limefile_header_decode(raw, &header) == 0;
    if (!match && got > 0 && formats)
        match = has_adapter(fd, raw, (size_t)got);
    close(fd);
    found->is_certain =
        got >= 0 && match >= 0 && limefs_identity_is_reliable(&stamp, seen, being_written);
    return match > 0;
}

/* Sets found->kind by the attributes or a node. Returns false if it depends on the contents. */
static bool kind_is_known(struct limefs *fs, struct limefs_node *parent, const char *name,
                          struct limefs_tree_entry *found)
{
    const struct stat *st = &found->st;
    found->kind = S_ISDIR(st->st_mode) ? LIMEFS_DIRECTORY : LIMEFS_PLAIN;
    return !S_ISREG(st->st_mode) || limefs_node_find_kind(fs, parent, name, found) ||
           st->st_size < LIMEFS_TREE_DETECT_BYTES;
}

/* Reads attributes and contents by one descriptor, because the name may lead to another file a
 * moment later. Reads the attributes first, because a process may be writing to the file. */
int limefs_tree_detect(bool formats, int dir, const char *name, struct limefs_tree_entry *found)
{
    struct timespec seen;
    struct stat *st = &found->st;
    clock_gettime(CLOCK_REALTIME, &seen);
    int fd = limefile_open_beneath(dir, name, O_PATH);
    if (fd < 0)
        return fd;
    found->is_certain = false;
    int err = fstat(fd, st) == 0 ? 0 : -errno, detected = 0;
    if (!err && S_ISREG(st->st_mode))
        detected = detect_container(formats, fd, &seen, found);
    found->kind = detected > 0           ? LIMEFS_CONTAINER
                  : S_ISDIR(st->st_mode) ? LIMEFS_DIRECTORY
                                         : LIMEFS_PLAIN;
    close(fd);
    return detected < 0 ? detected : err;
}

int limefs_tree_lookup(struct limefs *fs, struct limefs_node *parent, const char *name,
                       struct limefs_tree_entry *found)
{
    struct timespec seen;
    int dir = limefs_tree_open_dir(fs, parent);
    if (dir < 0)
        return dir;
    clock_gettime(CLOCK_REALTIME, &seen);
    int err = fstatat(dir, name, &found->st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
    struct limefile_identity stamp = limefile_identify(&found->st);
    found->is_certain =
        !err && S_ISLNK(stamp.mode) && limefs_identity_is_reliable(&stamp, &seen, false);
    if (!err && !kind_is_known(fs, parent, name, found))
        err = limefs_tree_detect(fs->options.formats, dir, name, found);
    close(dir);
    return err;
}
