/* descriptor.c - open files below a directory, and reopen files by descriptor */
#define _GNU_SOURCE
#include "descriptor.h"
#include "limeplatform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WALK_FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Copies the first component of *path to `name` and moves *path to the next component. */
static int next_component(const char **path, char name[NAME_MAX + 1])
{
    size_t len = strcspn(*path, "/");
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, *path, len);
    name[len] = '\0';
    *path += len;
    *path += strspn(*path, "/");
    return strcmp(name, "..") == 0 ? -EXDEV : 0;
}

/* Returns the -errno that openat2() would have: at a link in the middle of a path, it fails
 * with ELOOP, but openat() fails with ENOTDIR. */
static int open_error(int dir, const char *name)
{
    struct stat st;
    int err = -errno;
    bool link = err == -ENOTDIR && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISLNK(st.st_mode);
    return link ? -ELOOP : err;
}

int limefile_walk_beneath(int dir, const char *path, int flags)
{
    char name[NAME_MAX + 1];
    int at = dir, fd = -ENOENT;
    if (*path == '/')
        return -EXDEV;
    while (*path) {
        int err = next_component(&path, name);
        if (!err) {
            fd = openat(at, name, *path ? WALK_FLAGS : flags | O_NOFOLLOW | O_CLOEXEC);
            err = fd < 0 ? *path ? open_error(at, name) : -errno : 0;
        }
        if (at != dir)
            close(at);
        if (err)
            return err;
        at = fd;
    }
    return fd;
}

int limefile_open_beneath(int dir, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, /* O_PATH can still open a link */
    };
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    /* The seccomp filter of Docker and others can return EPERM for a new system call. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return limefile_walk_beneath(dir, path, flags);
    return fd < 0 ? -errno : (int)fd;
}

void limefile_fd_path(int fd, char path[LIMEFILE_FD_PATH_MAX])
{
    snprintf(path, LIMEFILE_FD_PATH_MAX, "/proc/self/fd/%d", fd);
}

int limefile_open_at(int dir, const char *path, int flags, mode_t mode)
{
    const struct timespec delay = {.tv_nsec = 1000000};
    int fd = openat(dir, path, flags | O_CLOEXEC, mode);
    for (int i = 0; i < 5 && fd < 0 && errno == EAGAIN; i++) {
        nanosleep(&delay, NULL);
        fd = openat(dir, path, flags | O_CLOEXEC, mode);
    }
    return fd < 0 ? -errno : fd;
}

int limefile_reopen(int fd, int flags)
{
    char path[LIMEFILE_FD_PATH_MAX];
    limefile_fd_path(fd, path);
    return limefile_open_at(AT_FDCWD, path, flags, 0);
}

int limefile_check_name(int dir, const char *name, int fd)
{
    struct stat named, open;
    if (fstat(fd, &open) != 0 || fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    return named.st_dev == open.st_dev && named.st_ino == open.st_ino ? 0 : -ESTALE;
}
