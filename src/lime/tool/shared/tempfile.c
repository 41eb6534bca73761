/* tempfile.c - all or nothing */
#define _GNU_SOURCE
#include "tempfile.h"
#include "limefile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the guard ---- */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static const char *volatile guarded;
static volatile int guarded_folder, guarded_fd = -1;
static volatile off_t guarded_end;

static void remove_and_die(int number)
{
    if (guarded)
        unlinkat(guarded_folder, guarded, 0);
    if (guarded_fd >= 0 && ftruncate(guarded_fd, guarded_end) != 0)
        guarded_fd = -1; /* lime repair cuts it */
    signal(number, SIG_DFL);
    raise(number); /* delivered on return, so that the parent sees the true reason */
}

static void catch_signals(void)
{
    static bool done;
    for (size_t i = 0; !done && i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old, new = {.sa_handler = remove_and_die};
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &new, NULL); /* what was ignored (nohup) stays so */
    }
    done = true;
}

void guard_set(int folder, const char *path)
{
    catch_signals();
    guarded_folder = folder;
    guarded = path;
}

void guard_end(int fd, uint64_t end)
{
    catch_signals();
    guarded_end = (off_t)end;
    guarded_fd = fd;
}

void guard_lift(void)
{
    guarded = NULL;
    guarded_fd = -1;
}

void guard_hold(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&held, signals[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}

void guard_release(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

bool guard_waits(void)
{
    sigset_t waiting;
    struct sigaction action;
    if (sigpending(&waiting) != 0)
        return false;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigismember(&waiting, signals[i]) == 1 &&
            sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            return true;
    return false;
}

/* ---- folders and modes ---- */

static char *folder_of(const char *path)
{
    char *copy = strdup(path);
    char *folder = copy ? strdup(dirname(copy)) : NULL;
    free(copy);
    return folder;
}

int sync_folder_of(const char *path)
{
    char *folder = folder_of(path);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int err = fd < 0 || (fsync(fd) != 0 && errno != EINVAL) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(folder);
    return err;
}

/* The temporary file gets what the target has, or what a new file would get. */
static int adopt_mode(int fd, const char *target)
{
    struct stat st;
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = 0666 & ~mask;
    if (stat(target, &st) == 0) {
        mode = st.st_mode & 0777;
        /* Where the group cannot be kept, another one gets no more than everybody has. */
        if (fchown(fd, st.st_uid, st.st_gid) != 0 && fchown(fd, (uid_t)-1, st.st_gid) != 0)
            mode = (mode & ~(mode_t)070) | (mode & 07) << 3;
    }
    return fchmod(fd, mode) == 0 ? 0 : -errno;
}

/* ---- the file ---- */

static int find_target(struct tempfile *t, const char *target)
{
    struct stat st;
    if (stat(target, &st) == 0) {
        if (!S_ISREG(st.st_mode))
            return S_ISDIR(st.st_mode) ? -EISDIR : LIMEFILE_E_NOT_FILE;
        t->target = realpath(target, NULL);                  /* a link stays a link */
    } else if (errno == ENOENT && lstat(target, &st) != 0) { /* nor a link that leads nowhere */
        t->target = strdup(target);
    }
    return t->target ? 0 : -errno;
}

static void forget(struct tempfile *t)
{
    free(t->target);
    free(t->path);
    *t = (struct tempfile){.fd = -1};
}

int tempfile_open(struct tempfile *t, const char *target)
{
    sigset_t before;
    *t = (struct tempfile){.fd = -1};
    int err = find_target(t, target);
    char *folder = err ? NULL : folder_of(t->target);
    if (!err && (!folder || asprintf(&t->path, "%s/.lime-XXXXXX", folder) < 0)) {
        t->path = NULL;
        err = -ENOMEM;
    }
    free(folder);
    if (!err) {
        guard_hold(&before);
        t->fd = mkostemp(t->path, O_CLOEXEC);
        err = t->fd < 0 ? -errno : 0;
        if (!err)
            guard_set(AT_FDCWD, t->path);
        guard_release(&before);
    }
    if (err)
        forget(t);
    return err;
}

int tempfile_commit(struct tempfile *t)
{
    sigset_t before;
    int err = adopt_mode(t->fd, t->target);
    if (!err && fsync(t->fd) != 0)
        err = -errno;
    if (close(t->fd) != 0 && !err)
        err = -errno;
    t->fd = -1;
    guard_hold(&before);
    if (!err && rename(t->path, t->target) != 0)
        err = -errno;
    if (!err)
        guard_lift();
    guard_release(&before);
    if (err) {
        tempfile_abort(t);
        return err;
    }
    err = sync_folder_of(t->target);
    forget(t);
    return err;
}

void tempfile_abort(struct tempfile *t)
{
    if (t->fd >= 0)
        close(t->fd);
    unlink(t->path);
    guard_lift();
    forget(t);
}

int tempfile_unnamed(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    FILE *file = tmpfile(); /* that file system has no such thing */
    fd = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
    int err = errno;
    if (file)
        fclose(file);
    return fd < 0 ? -err : fd;
}
