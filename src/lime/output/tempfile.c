/* tempfile.c - create temporary files of outputs, remove those of killed processes */
#define _GNU_SOURCE
#include "tempfile.h"
#include "descriptor.h"
#include "limeedit.h"
#include "limeoutput.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MARK ".lime-tmp-"

enum {
    SUFFIX_MAX = 64, /* most bytes of MARK and the text behind it */
    TRIES = 100,
};

/* ---- processes ---- */

/* The process that created a temporary file. The file's name contains the host because this
 * host cannot check whether a process of another host, or PID namespace, is running. A lock on
 * the file could not show it: on some file systems other hosts do not see the lock. */
struct creator {
    unsigned host; /* hash of the host's name and the PID namespace */
    int pid;
    uint64_t start; /* start time as in /proc/PID/stat, in clock ticks; 0: unknown */
};

static unsigned hash_text(unsigned hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619U;
    return hash;
}

static unsigned hash_host(void)
{
    struct utsname host;
    char space[64] = "";
    if (uname(&host) != 0)
        host.nodename[0] = '\0';
    if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0)
        space[0] = '\0';
    return hash_text(hash_text(2166136261U, host.nodename), space);
}

/* Returns a process's start time, or 0 if unknown. *state: its state as in proc(5), or '?'. */
static uint64_t read_start_time(int pid, char *state)
{
    char path[64], line[1024] = "";
    unsigned long long start;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    const char *name_end = n < 0 ? NULL : strrchr(line, ')');
    *state = '?';
    if (!name_end || sscanf(name_end,
                            ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                            "%*s %*s %*s %llu",
                            state, &start) != 2)
        return 0;
    return start;
}

static bool is_running(const struct creator *c)
{
    char state;
    if (kill(c->pid, 0) != 0 && errno == ESRCH)
        return false;
    uint64_t start = read_start_time(c->pid, &state);
    return state != 'Z' && state != 'X' && (!start || !c->start || start == c->start);
}

/* ---- names: .TARGET.lime-tmp-HOST-PID-START-COUNT ---- */

/* Describes this process. Renews the cached description after a fork(): it is the parent's. */
static const struct creator *get_own_process(void)
{
    static struct creator creator;
    char state;
    if (creator.pid != getpid()) {
        creator.pid = getpid();
        creator.host = hash_host();
        creator.start = read_start_time(creator.pid, &state);
    }
    return &creator;
}

static void format_temp_name(const char *target, char name[NAME_MAX + 1])
{
    static unsigned count;
    const struct creator *creator = get_own_process();
    snprintf(name, NAME_MAX + 1, ".%.*s" MARK "%08x-%d-%llx-%u", NAME_MAX - 1 - SUFFIX_MAX,
             target, creator->host, creator->pid, (unsigned long long)creator->start, count++);
}

static bool parse_temp_name(const char *name, struct creator *creator)
{
    unsigned long long start;
    unsigned count;
    int end = 0;
    const char *mark = NULL;
    for (const char *at = name; (at = strstr(at, MARK)); at++)
        mark = at;
    if (name[0] != '.' || !mark ||
        sscanf(mark, MARK "%8x-%d-%llx-%u%n", &creator->host, &creator->pid, &start, &count,
               &end) != 4)
        return false;
    creator->start = start;
    return mark[end] == '\0' && creator->pid > 0;
}

bool limefile_output_is_temporary(const char *name)
{
    struct creator creator;
    return parse_temp_name(name, &creator);
}

/* ---- the lock of the target ---- */

int limefile_output_lock(int dir_fd, const char *name)
{
    int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = limefile_open_at(dir_fd, name, O_RDWR | flags, 0);
    bool writes = fd >= 0;
    if (fd == -EACCES || fd == -EPERM || fd == -EROFS || fd == -ETXTBSY)
        fd = limefile_open_at(dir_fd, name, O_RDONLY | flags, 0);
    if (fd < 0 || (writes ? limefile_lock(fd) : limefile_lock_shared(fd)) != -EBUSY)
        return fd; /* also if locking failed because the file system has no locks */
    close(fd);
    return -EBUSY;
}

/* ---- the file ---- */

int limefile_tempfile_create(int dir_fd, const char *target, mode_t mode, char **name)
{
    char text[NAME_MAX + 1];
    int fd = -1;
    for (int i = 0; fd < 0 && i < TRIES; i++) {
        format_temp_name(target, text);
        fd = openat(dir_fd, text, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            return -errno;
    }
    if (fd < 0)
        return -EEXIST;
    *name = strdup(text);
    if (*name)
        return fd;
    unlinkat(dir_fd, text, 0);
    close(fd);
    return -ENOMEM;
}

static bool is_leftover(int dir_fd, const char *name, unsigned host)
{
    struct stat st;
    struct creator creator;
    return parse_temp_name(name, &creator) && creator.host == host &&
           fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           st.st_uid == geteuid() && !is_running(&creator);
}

void limefile_output_remove_stale(int dir_fd)
{
    unsigned host = get_own_process()->host;
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_leftover(dir_fd, entry->d_name, host))
            unlinkat(dir_fd, entry->d_name, 0);
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
}

/* ---- identity of a file ---- */

/* Returns the identity as a text that the caller frees; NULL if `path` is not in a mount. */
static char *read_mounted_identity(const char *path)
{
    ssize_t n = getxattr(path, LIMEFILE_FILES_XATTR, NULL, 0);
    char *text = n > 0 ? malloc((size_t)n + 1) : NULL;
    if (!text)
        return NULL;
    n = getxattr(path, LIMEFILE_FILES_XATTR, text, (size_t)n);
    if (n > 0) {
        text[n] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

char *limefile_output_file_id(int fd, bool only_mounted)
{
    struct stat st;
    char path[LIMEFILE_FD_PATH_MAX], *text;
    limefile_fd_path(fd, path);
    text = read_mounted_identity(path);
    if (text)
        return text;
    if (only_mounted)
        return strdup("");
    if (fstat(fd, &st) != 0)
        return NULL;
    return asprintf(&text, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino) < 0 ? NULL
                                                                                      : text;
}

bool limefile_output_same_file(int fd, int other)
{
    char *one = limefile_output_file_id(fd, false),
         *two = limefile_output_file_id(other, false);
    bool same = one && two && strcmp(one, two) == 0;
    free(one);
    free(two);
    return same;
}
