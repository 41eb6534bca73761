/* ready.c - the parent waits until the mount is ready */
#include "ready.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int to_parent = -1;

static void wait_for_child(int from_child)
{
    unsigned char exit_code;
    ssize_t got;
    do
        got = read(from_child, &exit_code, 1);
    while (got < 0 && errno == EINTR);
    _exit(got == 1 ? exit_code : 1);
}

/* What the caller had open, such as a lock or the end of a pipe, must not live as long as the
 * mount. All that is opened here is close-on-exec, so what is not has been inherited. */
static void close_inherited(void)
{
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);
        if (fd > 2 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            close(fd);
    }
    if (dir)
        closedir(dir);
}

int limefs_daemonise(bool keep_inherited)
{
    int ends[2];
    if (pipe(ends) != 0)
        return -errno;
    pid_t child = fork();
    if (child < 0)
        return -errno;
    if (child > 0) {
        close(ends[1]);
        wait_for_child(ends[0]);
    }
    close(ends[0]);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    to_parent = ends[1];
    if (!keep_inherited)
        close_inherited();
    setsid();
    return chdir("/") == 0 ? 0 : -errno; /* keep no folder busy; all paths are absolute now */
}

void limefs_ready(int exit_code)
{
    if (to_parent < 0)
        return;
    /* Nobody reads what the daemon would write from now on. */
    int null = open("/dev/null", O_RDWR);
    if (exit_code == 0 && null >= 0)
        for (int fd = 0; fd <= 2; fd++)
            dup2(null, fd);
    if (null > 2)
        close(null);
    unsigned char code = (unsigned char)exit_code;
    while (write(to_parent, &code, 1) < 0 && errno == EINTR)
        ;
    close(to_parent);
    to_parent = -1;
}
