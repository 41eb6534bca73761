/* tree.c - reaches the files below the source */
#define _GNU_SOURCE
#include "tree.h"
#include "caller.h"
#include "descriptor.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Builds the path from its end; NULL if it is too long. */
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

static const char *path_of(const struct limefs_node *node, char *buf, size_t cap)
{
    char *at = buf + cap - 1;
    *at = '\0';
    for (; at && node->parent; node = node->parent)
        at = prepend(at, buf, node->name);
    if (at && *at == '\0')
        return ".";
    return at;
}

const char *limefs_tree_label(struct limefs *fs, const struct limefs_node *node, char *buf,
                              size_t cap)
{
    if (!node->parent)
        return fs->source;
    const char *path = path_of(node, buf, cap);
    return path ? path : node->name;
}

/* ---- what nodes stand for ---- */

static int find(struct limefs *fs, const struct limefs_node *node, int flags)
{
    char buf[PATH_MAX];
    const char *path = fs->container ? fs->container : path_of(node, buf, sizeof buf);
    if (!path)
        return -ENAMETOOLONG;
    limefs_own_begin();
    int fd = limefile_open_beneath(fs->source_fd, path, O_PATH | flags);
    limefs_own_end();
    return fd;
}

/* A descriptor of what the kernel knows by the node, or else closed. */
static int compared(struct limefs *fs, const struct limefs_node *node, int fd)
{
    struct stat st;
    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? -ESTALE : fd;
    int err = fstat(fd, &st) != 0 ? -errno : limefs_node_is(fs, node, &st) ? 0 : -ESTALE;
    if (!err)
        return fd;
    close(fd);
    return err;
}

int limefs_tree_hold(struct limefs *fs, const struct limefs_node *node)
{
    return compared(fs, node, find(fs, node, 0));
}

int limefs_tree_folder(struct limefs *fs, const struct limefs_node *node)
{
    return compared(fs, node, find(fs, node, O_DIRECTORY));
}

int limefs_tree_find(struct limefs *fs, const struct limefs_node *node)
{
    if (!node->parent)
        return find(fs, node, 0);
    limefs_own_begin();
    int folder = limefs_tree_folder(fs, node->parent);
    int fd = folder < 0 ? folder : limefile_open_beneath(folder, node->name, O_PATH);
    limefs_own_end();
    if (folder >= 0)
        close(folder);
    return fd;
}

int limefs_tree_stat(struct limefs *fs, const struct limefs_node *node, struct stat *st)
{
    int fd = limefs_tree_find(fs, node);
    if (fd < 0)
        return fd;
    int err = fstat(fd, st) == 0 ? 0 : -errno;
    close(fd);
    return err;
}

/* ---- names ---- */

/* A container begins with a good header. What cannot be read is not a container either. Whether
 * it is one does not depend on who asks, so the daemon looks for itself; of what it reads, the
 * caller learns no more than this. */
static bool begins_like_container(int file)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    struct limefile_fd source;
    limefs_own_begin();
    int fd = limefile_reopen(file, O_RDONLY | O_NONBLOCK);
    limefs_own_end();
    if (fd < 0)
        return false;
    limefile_fd_init(&source, fd);
    ssize_t got = limefile_read_full(&source.source, raw, sizeof raw, 0);
    close(fd);
    return got == sizeof raw && limefile_header_decode(raw, &header) == 0;
}

/* What its attributes alone, or what is known of it, tell; false: it must be looked into. */
static bool is_plain(struct limefs *fs, struct limefs_node *parent, const char *name,
                     const struct stat *st, enum limefs_kind *kind)
{
    struct limefs_stamp stamp = limefs_stamp_of(st);
    *kind = S_ISDIR(st->st_mode) ? LIMEFS_DIRECTORY : LIMEFS_OTHER;
    if (!S_ISREG(st->st_mode))
        return true;
    if (fs->options.rw && limefs_node_is_fresh(fs, parent, name, &stamp)) {
        *kind = LIMEFS_CONTAINER;
        return true;
    }
    return st->st_size < LIMEFILE_HEADER_BYTES ||
           limefs_node_known_kind(fs, parent, name, &stamp, kind);
}

/* The name may lead to another file by now: what is looked into is what is told of. */
static int look_into(int folder, const char *name, struct stat *st, enum limefs_kind *kind)
{
    int fd = limefile_open_beneath(folder, name, O_PATH);
    if (fd < 0)
        return fd;
    int err = fstat(fd, st) == 0 ? 0 : -errno;
    *kind = S_ISDIR(st->st_mode) ? LIMEFS_DIRECTORY : LIMEFS_OTHER;
    if (!err && S_ISREG(st->st_mode) && begins_like_container(fd))
        *kind = LIMEFS_CONTAINER;
    close(fd);
    return err;
}

int limefs_tree_look(struct limefs *fs, struct limefs_node *parent, const char *name,
                     struct stat *st, enum limefs_kind *kind)
{
    int folder = limefs_tree_folder(fs, parent);
    if (folder < 0)
        return folder;
    int err = fstatat(folder, name, st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
    if (!err && !is_plain(fs, parent, name, st, kind))
        err = look_into(folder, name, st, kind);
    close(folder);
    return err;
}
