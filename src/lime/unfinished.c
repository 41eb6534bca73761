/* unfinished.c - temporary files of outputs, and those that killed processes have left */
#define _GNU_SOURCE
#include "unfinished.h"
#include "descriptor.h"
#include "limeedit.h"
#include "limeoutput.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MARK ".lime-tmp-"

enum {
    HOST_CHARS = 8,
    RANDOM_CHARS = 6,
    SUFFIX_CHARS = sizeof MARK - 1 + HOST_CHARS + 1 + RANDOM_CHARS,
    TRIES = 100,
};

/* ---- names ---- */

/* The host is a part of the name because locks are local to it on some network file systems. */
static void format_host(char text[HOST_CHARS + 1])
{
    struct utsname host;
    uint32_t hash = UINT32_C(2166136261);
    if (uname(&host) != 0)
        host.nodename[0] = '\0';
    for (const char *at = host.nodename; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT32_C(16777619);
    snprintf(text, HOST_CHARS + 1, "%08x", (unsigned)hash);
}

static int format_name(const char *target, char name[NAME_MAX + 1])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char bytes[RANDOM_CHARS];
    char host[HOST_CHARS + 1], random[RANDOM_CHARS + 1] = "";
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return -errno;
    for (size_t i = 0; i < RANDOM_CHARS; i++)
        random[i] = letters[bytes[i] % 32];
    format_host(host);
    snprintf(name, NAME_MAX + 1, ".%.*s" MARK "%s-%s", NAME_MAX - 1 - (int)SUFFIX_CHARS, target,
             host, random);
    return 0;
}

/* ".TARGET.lime-tmp-HOST-XXXXXX" of this host. */
static bool is_ours(const char *name, const char *mark_of_host)
{
    size_t n = strlen(name);
    if (name[0] != '.' || n < SUFFIX_CHARS + 2)
        return false;
    const char *suffix = name + n - SUFFIX_CHARS;
    return strncmp(suffix, mark_of_host, strlen(mark_of_host)) == 0 &&
           strspn(name + n - RANDOM_CHARS, "abcdefghijklmnopqrstuvwxyz234567") == RANDOM_CHARS;
}

/* ---- locks ---- */

/* Needs no permission to write. */
static int lock_shared(int fd)
{
    struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &all) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

static int open_and_lock(int folder, const char *name, int *locked)
{
    int flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    int fd = limefile_open_at(folder, name, O_RDWR | flags, 0);
    bool writes = fd >= 0;
    if (fd == -EACCES || fd == -EPERM || fd == -EROFS || fd == -ETXTBSY)
        fd = limefile_open_at(folder, name, O_RDONLY | flags, 0);
    if (fd >= 0)
        *locked = writes ? limefile_lock(fd) : lock_shared(fd);
    return fd;
}

int limefile_output_lock(int folder, const char *name)
{
    int locked;
    int fd = open_and_lock(folder, name, &locked);
    if (fd >= 0 && locked == -EBUSY) {
        close(fd);
        return -EBUSY;
    }
    return fd; /* also where the file system has no locks */
}

static bool has_name(int folder, const char *name, int fd)
{
    struct stat named, open;
    return fstat(fd, &open) == 0 && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

/* ---- the file ---- */

/* A process that removes stale files can have the lock between creation and lock, and remove
 * the new file: then another name is tried. */
static int create_locked(int folder, const char *name, mode_t mode)
{
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    if (limefile_lock(fd) != -EBUSY && has_name(folder, name, fd))
        return fd;
    close(fd);
    return -EEXIST;
}

int limefile_unfinished_create(int folder, const char *target, mode_t mode, char **name)
{
    char text[NAME_MAX + 1];
    int fd = -EEXIST;
    for (int i = 0; fd == -EEXIST && i < TRIES; i++) {
        fd = format_name(target, text);
        if (!fd)
            fd = create_locked(folder, text, mode);
    }
    if (fd < 0)
        return fd;
    *name = strdup(text);
    if (*name)
        return fd;
    unlinkat(folder, text, 0);
    close(fd);
    return -ENOMEM;
}

static void remove_stale(int folder, const char *name)
{
    struct stat st;
    int locked = -1;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        st.st_uid != geteuid())
        return;
    int fd = open_and_lock(folder, name, &locked);
    if (fd < 0)
        return;
    if (locked == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        has_name(folder, name, fd))
        unlinkat(folder, name, 0);
    close(fd);
}

void limefile_output_clean(int folder)
{
    char mark[sizeof MARK + HOST_CHARS + 1] = MARK;
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    format_host(mark + sizeof MARK - 1);
    strcat(mark, "-");
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_ours(entry->d_name, mark))
            remove_stale(folder, entry->d_name);
    if (dir)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
}

/* ---- which file is it ---- */

/* A limefs mount gives "DEVICE:INODE ..." of the files that an inode of it is made of. */
#define FILES "user.lime.files"

static char *read_files(const char *path)
{
    ssize_t n = getxattr(path, FILES, NULL, 0);
    char *text = n > 0 ? malloc((size_t)n + 1) : NULL;
    if (!text)
        return NULL;
    n = getxattr(path, FILES, text, (size_t)n);
    if (n > 0) {
        text[n] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

char *limefile_identity(int fd)
{
    struct stat st;
    char path[LIMEFILE_FD_PATH_MAX], *text;
    limefile_fd_path(fd, path);
    text = read_files(path);
    if (text)
        return text;
    if (fstat(fd, &st) != 0)
        return NULL;
    return asprintf(&text, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino) < 0 ? NULL
                                                                                      : text;
}

bool limefile_identity_meets(const char *one, const char *other)
{
    for (size_t n; *one; one += n + strspn(one + n, " ")) {
        n = strcspn(one, " ");
        for (const char *at = other; *at;) {
            size_t m = strcspn(at, " ");
            if (m == n && memcmp(at, one, n) == 0)
                return true;
            at += m + strspn(at + m, " ");
        }
    }
    return false;
}

bool limefile_output_same(int fd, int other)
{
    char *one = limefile_identity(fd), *two = limefile_identity(other);
    bool same = one && two && limefile_identity_meets(one, two);
    free(one);
    free(two);
    return same;
}
