/* cleanup.c - a child process that removes the benchmark's files and mounts */
#define _GNU_SOURCE
#include "cleanup.h"
#include "backend.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t cleanup_pid;
static int cleanup_pipe = -1;

enum kind {
    REMOVE_FILE = 'f',
    REMOVE_MOUNT = 'm',
};

struct entry {
    struct entry *next;
    char kind;
    char path[];
};

/* ---- mounts ---- */

bool bench_cleanup_unmount(const char *directory, bool lazily)
{
    pid_t pid;
    int status;
    char *argv[] = {"fusermount3", lazily ? "-uz" : "-u", "-q", (char *)directory, NULL};
    posix_spawnattr_t attributes;
    if (geteuid() == 0)
        return umount2(directory, UMOUNT_NOFOLLOW | (lazily ? MNT_DETACH : 0)) == 0;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID); /* ^C does not reach it */
    errno = posix_spawnp(&pid, argv[0], NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    if (errno != 0 || waitpid(pid, &status, 0) != pid)
        return false;
    errno = EBUSY;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void bench_cleanup_remove(const char *directory)
{
    /* For a mount point, rmdir() gives EBUSY, even if the mount's daemon has ended. */
    if (rmdir(directory) == 0 || errno == ENOENT)
        return;
    bench_cleanup_unmount(directory, true);
    rmdir(directory);
}

/* ---- the guard ---- */

/* Adds a path to the list unless the list has it. text: the kind, a letter, and the path. */
static void record_path(const char *text, struct entry **entries)
{
    for (const struct entry *entry = *entries; entry; entry = entry->next)
        if (strcmp(entry->path, text + 1) == 0)
            return;
    struct entry *entry = malloc(sizeof *entry + strlen(text));
    if (entry) {
        entry->next = *entries;
        entry->kind = text[0];
        strcpy(entry->path, text + 1);
        *entries = entry;
    }
}

/* The guard: reads paths until the pipe is closed, then removes them. mpirun waits until every
 * process has closed stderr, and so for the guard, which keeps stderr open. */
__attribute__((noreturn)) static void run_cleanup(int from_program)
{
    struct entry *entries = NULL;
    FILE *texts = fdopen(from_program, "r");
    char *text = NULL;
    size_t capacity = 0;
    int null = open("/dev/null", O_RDWR);
    setsid();
    dup2(null, 0);
    dup2(null, 1);
    prctl(PR_SET_NAME, "lime-bench-end");
    for (int signal = SIGHUP; signal <= SIGTERM; signal++)
        sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    for (ssize_t n; texts && (n = getdelim(&text, &capacity, '\0', texts)) > 0 && !text[n - 1];)
        record_path(text, &entries);
    for (struct entry *entry = entries; entry; entry = entry->next) /* mounts first */
        if (entry->kind == REMOVE_MOUNT)
            bench_cleanup_remove(entry->path);
    for (struct entry *entry = entries; entry; entry = entry->next)
        if (entry->kind == REMOVE_FILE)
            unlink(entry->path);
    _exit(0);
}

/* ---- the benchmark's side ---- */

bool bench_cleanup_start(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    cleanup_pid = fork();
    if (cleanup_pid == 0) {
        close(ends[1]);
        run_cleanup(ends[0]);
    }
    close(ends[0]);
    cleanup_pipe = ends[1];
    return cleanup_pid > 0;
}

/* This must be async-signal-safe, because handle_exit_signal() calls it. */
void bench_cleanup_finish(void)
{
    if (cleanup_pipe < 0)
        return;
    close(cleanup_pipe);
    cleanup_pipe = -1;
    while (waitpid(cleanup_pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Reports a path to the guard. Does nothing without a guard, or if the path is too long. */
static void send_path(enum kind kind, const char *path)
{
    char text[1 + BENCH_PATH_BYTES];
    int length = snprintf(text, sizeof text, "%c%s", kind, path);
    if (cleanup_pipe < 0 || length >= (int)sizeof text)
        return;
    while (write(cleanup_pipe, text, (size_t)length + 1) < 0 && errno == EINTR)
        ;
}

void bench_cleanup_add_file(const char *path)
{
    send_path(REMOVE_FILE, path);
}

void bench_cleanup_add_mount(const char *path)
{
    send_path(REMOVE_MOUNT, path);
}

static void handle_exit_signal(int signal)
{
    bench_cleanup_finish();
    _exit(128 + signal);
}

void bench_cleanup_catch_signals(void)
{
    struct sigaction action = {.sa_handler = handle_exit_signal};
    sigfillset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}
