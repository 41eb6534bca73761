/*
 * holders.c - check whether a descriptor that is closed was the last one of an open file
 *
 * The kernel reports each descriptor that is closed, but not whether others remain: for `>file`
 * a shell closes one before its command writes anything. /proc shows the descriptors of the
 * processes that the daemon may inspect, without a request to the mount.
 */
#define _GNU_SOURCE
#include "writing.h"
#include "caller.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct wanted {
    const char *mountpoint; /* NULL: unknown */
    const struct limefile_index *index;
    uint64_t ordinal;
    unsigned long long inode;
};

static bool is_name(const struct wanted *wanted, const char *path)
{
    struct limefile_record record;
    const char *slash = strrchr(path, '/');
    size_t len = wanted->mountpoint ? strlen(wanted->mountpoint) : 0;
    if (len && (strncmp(path, wanted->mountpoint, len) != 0 || path[len] != '/'))
        return false;
    return slash && limefile_name_find(wanted->index, slash + 1, &record) == 0 &&
           record.ordinal == wanted->ordinal;
}

/* Compares flags and inode in fdinfo, which has the inode since Linux 5.14. */
static bool is_writer(const struct wanted *wanted, int info)
{
    char text[512];
    unsigned flags;
    unsigned long long inode;
    ssize_t n = read(info, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "flags:");
    if (!at || sscanf(at, "flags: %o", &flags) != 1 || (flags & O_ACCMODE) == O_RDONLY)
        return false;
    at = strstr(text, "\nino:");
    return !at || (sscanf(at, " ino: %llu", &inode) == 1 && inode == wanted->inode);
}

static bool is_held_as(const struct wanted *wanted, int proc, const char *pid, int fds,
                       const char *number)
{
    char path[PATH_MAX];
    ssize_t n = readlinkat(fds, number, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/')
        return false;
    path[n] = '\0';
    if (!is_name(wanted, path))
        return false;
    snprintf(path, sizeof path, "%s/fdinfo/%s", pid, number);
    int info = openat(proc, path, O_RDONLY | O_CLOEXEC);
    bool held = info >= 0 && is_writer(wanted, info);
    if (info >= 0)
        close(info);
    return held;
}

static DIR *open_directory(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}

static bool is_held_by(const struct wanted *wanted, int proc, const char *pid)
{
    char path[32];
    const struct dirent *entry;
    bool held = false;
    snprintf(path, sizeof path, "%.20s/fd", pid);
    DIR *fds = open_directory(proc, path);
    while (fds && !held && (entry = readdir(fds)))
        held = is_held_as(wanted, proc, pid, dirfd(fds), entry->d_name);
    if (fds)
        closedir(fds);
    return held;
}

static bool is_held(const struct wanted *wanted)
{
    const struct dirent *entry;
    bool held = false;
    DIR *proc = open_directory(AT_FDCWD, "/proc");
    while (proc && !held && (entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            held = is_held_by(wanted, dirfd(proc), entry->d_name);
    if (proc)
        closedir(proc);
    return held;
}

bool limefs_record_is_held(struct limefs *fs, struct limefs_view *snap, uint64_t ordinal)
{
    struct stat st;
    struct limefile_record record;
    struct limefile_index *index = limefs_view_index(fs, snap);
    bool held = false;
    if (limefile_index_get(index, ordinal, &record) == 0) {
        st = limefs_view_stat(fs, snap);
        limefs_own_begin(); /* it may be open in another user's process */
        ino_t inode = limefs_shown_record(fs, &st, ordinal);
        held = is_held(&(struct wanted){fs->mountpoint, index, ordinal, inode});
        limefs_own_end();
    }
    limefile_index_free(index);
    return held;
}
