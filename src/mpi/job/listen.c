/* listen.c - create and remove the Unix socket that clients connect to */
#define _GNU_SOURCE
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKLOG = 1024,
    LOCK_TRIES = 20,
    LOCK_PAUSE_MS = 50,
};

static struct {
    const char *path;
    dev_t dev;
    ino_t ino;
    atomic_bool is_bound;
} bound_socket;

static void fill_address(const char *path, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    strncpy(address->sun_path, path, sizeof address->sun_path - 1);
}

int job_listen_check(const char *path)
{
    struct stat st;
    struct sockaddr_un address;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(st.st_mode))
        return -EEXIST;
    if (st.st_uid != geteuid())
        return -EPERM;
    fill_address(path, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* Only a refusal proves that no process listens; EAGAIN means that a job is busy. */
    int err = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? EADDRINUSE
              : errno == ECONNREFUSED || errno == ENOENT                    ? 0
                                                                            : EADDRINUSE;
    close(fd);
    return -err;
}

/* Gives up after LOCK_TRIES: in /tmp, any user could hold the lock forever. */
static void lock_briefly(int fd)
{
    const struct timespec pause = {0, LOCK_PAUSE_MS * 1000000L};
    for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        nanosleep(&pause, NULL);
}

/* Opens the directory of the socket and tries to lock it, so that only one of two jobs replaces
 * a dead socket. Returns the descriptor, or -1 if the directory cannot be opened. */
static int lock_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(name);
    if (fd >= 0)
        lock_briefly(fd);
    return fd;
}

static int bind_and_listen(int fd, const char *path)
{
    struct stat st;
    struct sockaddr_un address;
    fill_address(path, &address);
    int err = job_listen_check(path);
    if (err)
        return err;
    if (unlink(path) != 0 && errno != ENOENT)
        return -errno;
    /* bind() gives the file the mode of the socket. */
    if (fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    if (listen(fd, BACKLOG) == 0 && lstat(path, &st) == 0) {
        bound_socket.path = path;
        bound_socket.dev = st.st_dev;
        bound_socket.ino = st.st_ino;
        atomic_store(&bound_socket.is_bound, true);
        return 0;
    }
    err = -errno;
    unlink(path);
    return err;
}

int job_listen(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int lock = lock_directory(path);
    int err = bind_and_listen(fd, path);
    if (lock >= 0)
        close(lock);
    if (!err)
        return fd;
    close(fd);
    return err;
}

void job_listen_remove(void)
{
    struct stat st;
    if (atomic_exchange(&bound_socket.is_bound, false) && lstat(bound_socket.path, &st) == 0 &&
        st.st_dev == bound_socket.dev && st.st_ino == bound_socket.ino)
        unlink(bound_socket.path);
}
