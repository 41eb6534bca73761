/* tree.c - reaches the files below the source */
#define _GNU_SOURCE
#include "tree.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
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

static const char *path_of(const struct limefs_node *node, const char *name, char *buf,
                           size_t cap)
{
    char *at = buf + cap - 1;
    *at = '\0';
    if (name)
        at = prepend(at, buf, name);
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
    const char *path = path_of(node, NULL, buf, cap);
    return path ? path : node->name;
}

static int open_beneath(int dir, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, /* but O_PATH of a link itself */
    };
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd < 0 && errno == ENOSYS) /* Linux before 5.6 */
        fd = openat(dir, path, flags | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : (int)fd;
}

int limefs_tree_open(struct limefs *fs, const struct limefs_node *node, const char *name,
                     int flags)
{
    char buf[PATH_MAX];
    const char *path = fs->container ? fs->container : path_of(node, name, buf, sizeof buf);
    if (!path)
        return -ENAMETOOLONG;
    if (!(flags & O_PATH))
        flags |= O_NONBLOCK; /* should it have become a FIFO */
    return open_beneath(fs->source_fd, path, flags);
}

int limefs_tree_stat(struct limefs *fs, const struct limefs_node *node, const char *name,
                     struct stat *st)
{
    int fd = limefs_tree_open(fs, node, name, O_PATH);
    if (fd < 0)
        return fd;
    int err = fstat(fd, st) == 0 ? 0 : -errno;
    close(fd);
    return err;
}

/* A container begins with a good header. What cannot be read is no container, either. */
static bool begins_like_container(struct limefs *fs, const struct limefs_node *parent,
                                  const char *name)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    struct limefile_header header;
    int fd = limefs_tree_open(fs, parent, name, O_RDONLY);
    if (fd < 0)
        return false;
    struct limefile_fd file;
    limefile_fd_init(&file, fd);
    ssize_t got =
        limefile_check_fd(fd) == 0 ? limefile_read_full(&file.source, raw, sizeof raw, 0) : 0;
    close(fd);
    return got == sizeof raw && limefile_header_decode(raw, &header) == 0;
}

enum limefs_kind limefs_tree_kind(struct limefs *fs, struct limefs_node *parent,
                                  const char *name, const struct stat *st)
{
    struct limefs_stamp stamp = limefs_stamp_of(st);
    enum limefs_kind kind;
    if (S_ISDIR(st->st_mode))
        return LIMEFS_DIRECTORY;
    if (S_ISREG(st->st_mode) && fs->options.rw && limefs_node_is_fresh(fs, parent, name))
        return LIMEFS_CONTAINER;
    if (!S_ISREG(st->st_mode) || st->st_size < LIMEFILE_HEADER_BYTES)
        return LIMEFS_OTHER;
    if (limefs_node_known_kind(fs, parent, name, &stamp, &kind))
        return kind;
    return begins_like_container(fs, parent, name) ? LIMEFS_CONTAINER : LIMEFS_OTHER;
}
