/*
 * open_writers.c - check whether a descriptor that is closed was the last one of an open file
 *
 * The kernel reports each descriptor that is closed, but not whether others remain: for
 * `command >file`, a shell closes its descriptor before the command writes anything. /proc
 * shows the descriptors of all processes that the daemon has permission to inspect.
 */
#define _GNU_SOURCE
#include "writer_internal.h"
#include "credentials.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct search {
    const char *mountpoint; /* NULL: unknown */
    const struct limefile_index *index;
    uint64_t ordinal;
    unsigned long long inode;
};

static bool is_path_of_record(const struct search *search, const char *path)
{
    struct limefile_record record;
    const char *slash = strrchr(path, '/');
    size_t len = search->mountpoint ? strlen(search->mountpoint) : 0;
    if (len && (strncmp(path, search->mountpoint, len) != 0 || path[len] != '/'))
        return false;
    return slash && limefile_name_find(search->index, slash + 1, &record) == 0 &&
           record.ordinal == search->ordinal;
}

/* Compares flags and inode in fdinfo, which has the inode since Linux 5.14. */
static bool is_open_for_writing(const struct search *search, int fdinfo)
{
    char text[512];
    unsigned flags;
    unsigned long long inode;
    ssize_t n = read(fdinfo, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "flags:");
    if (!at || sscanf(at, "flags: %o", &flags) != 1 || (flags & O_ACCMODE) == O_RDONLY)
        return false;
    at = strstr(text, "\nino:");
    return !at || (sscanf(at, " ino: %llu", &inode) == 1 && inode == search->inode);
}

static bool is_writing_fd(const struct search *search, int proc, const char *pid, int fds,
                          const char *number)
{
    char path[PATH_MAX];
    ssize_t n = readlinkat(fds, number, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/')
        return false;
    path[n] = '\0';
    if (!is_path_of_record(search, path))
        return false;
    snprintf(path, sizeof path, "%s/fdinfo/%s", pid, number);
    int fdinfo = openat(proc, path, O_RDONLY | O_CLOEXEC);
    bool found = fdinfo >= 0 && is_open_for_writing(search, fdinfo);
    if (fdinfo >= 0)
        close(fdinfo);
    return found;
}

static DIR *open_proc_directory(int parent, const char *path)
{
    int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}

static bool process_is_writer(const struct search *search, int proc, const char *pid)
{
    char path[32];
    const struct dirent *entry;
    bool found = false;
    snprintf(path, sizeof path, "%.20s/fd", pid);
    DIR *fds = open_proc_directory(proc, path);
    while (fds && !found && (entry = readdir(fds)))
        found = is_writing_fd(search, proc, pid, dirfd(fds), entry->d_name);
    if (fds)
        closedir(fds);
    return found;
}

static bool find_open_writer(const struct search *search)
{
    const struct dirent *entry;
    bool found = false;
    DIR *proc = open_proc_directory(AT_FDCWD, "/proc");
    while (proc && !found && (entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            found = process_is_writer(search, dirfd(proc), entry->d_name);
    if (proc)
        closedir(proc);
    return found;
}

bool limefs_record_has_writer(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal)
{
    struct stat st;
    struct limefile_record record;
    struct limefile_index *index = limefs_snapshot_index(fs, snap);
    bool found = false;
    if (limefile_index_get(index, ordinal, &record) == 0) {
        st = limefs_snapshot_stat(fs, snap);
        limefs_daemon_creds_enter(); /* the writer may be another user's process */
        ino_t inode = limefs_visible_record_ino(fs, &st, ordinal);
        found = find_open_writer(&(struct search){fs->mountpoint, index, ordinal, inode});
        limefs_daemon_creds_leave();
    }
    limefile_index_free(index);
    return found;
}
