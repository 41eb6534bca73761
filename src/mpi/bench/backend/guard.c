/* guard.c - a process that removes what the benchmark has made */
#define _GNU_SOURCE
#include "guard.h"
#include "backend.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t guard;
static int to_guard = -1;

enum kind {
    A_FILE = 'f',
    A_MOUNT = 'm',
};

struct thing {
    struct thing *next;
    char kind;
    char path[];
};

/* ---- mounts ---- */

bool bench_guard_unmount(const char *directory, bool lazily)
{
    pid_t pid;
    int status;
    char *argv[] = {"fusermount3", lazily ? "-uz" : "-u", "-q", (char *)directory, NULL};
    posix_spawnattr_t attributes;
    if (geteuid() == 0)
        return umount2(directory, UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0)) == 0;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID); /* ^C is not for fusermount3 */
    errno = posix_spawnp(&pid, argv[0], NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    if (errno != 0 || waitpid(pid, &status, 0) != pid)
        return false;
    errno = EBUSY;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void bench_guard_remove(const char *directory)
{
    if (rmdir(directory) == 0 ||
        errno == ENOENT) /* of a mount point: EBUSY, without its daemon */
        return;
    bench_guard_unmount(directory, true);
    rmdir(directory);
}

/* ---- the guard ---- */

static bool read_all(int fd, void *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = read(fd, (char *)data + done, n - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Adds what the program has told. False: it has ended. */
static bool learn(int from_program, struct thing **all)
{
    char kind, path[BENCH_PATH_BYTES];
    unsigned short length;
    if (!read_all(from_program, &kind, 1) || !read_all(from_program, &length, sizeof length) ||
        length >= sizeof path || !read_all(from_program, path, length))
        return false;
    path[length] = '\0';
    for (struct thing *thing = *all; thing; thing = thing->next)
        if (strcmp(thing->path, path) == 0)
            return true;
    struct thing *thing = malloc(sizeof *thing + length + 1u);
    if (thing) {
        thing->next = *all;
        thing->kind = kind;
        strcpy(thing->path, path);
        *all = thing;
    }
    return true;
}

/* Keeps standard error, so that mpirun waits for it. */
__attribute__((noreturn)) static void stand_guard(int from_program)
{
    struct thing *all = NULL;
    int null = open("/dev/null", O_RDWR);
    setsid();
    dup2(null, 0);
    dup2(null, 1);
    prctl(PR_SET_NAME, "lime-bench-end");
    for (int signal = SIGHUP; signal <= SIGTERM; signal++)
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    while (learn(from_program, &all))
        ;
    for (struct thing *thing = all; thing; thing = thing->next) /* these use files */
        if (thing->kind == A_MOUNT)
            bench_guard_remove(thing->path);
    for (struct thing *thing = all; thing; thing = thing->next)
        if (thing->kind == A_FILE)
            unlink(thing->path);
    _exit(0);
}

/* ---- the program ---- */

bool bench_guard_start(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    guard = fork();
    if (guard == 0) {
        close(ends[1]);
        stand_guard(ends[0]);
    }
    close(ends[0]);
    to_guard = ends[1];
    return guard > 0;
}

/* A signal handler calls it, too. */
void bench_guard_end(void)
{
    if (to_guard < 0)
        return;
    close(to_guard);
    to_guard = -1;
    while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void tell(enum kind kind, const char *path)
{
    char message[3 + BENCH_PATH_BYTES];
    unsigned short length = (unsigned short)strlen(path);
    if (to_guard < 0 || length >= BENCH_PATH_BYTES)
        return;
    message[0] = (char)kind;
    memcpy(message + 1, &length, sizeof length);
    memcpy(message + 3, path, length);
    while (write(to_guard, message, 3u + length) < 0 && errno == EINTR)
        ;
}

void bench_guard_file(const char *path)
{
    tell(A_FILE, path);
}

void bench_guard_mount(const char *path)
{
    tell(A_MOUNT, path);
}

static void on_signal(int signal)
{
    bench_guard_end();
    _exit(128 + signal);
}

void bench_guard_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigfillset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}
