/*
 * push.c - write a file's data back to the disk while they are written
 *
 * MPI-IO writes into the page cache, where the kernel keeps the data for some time, and the
 * final sync would wait for all of them. Any descriptor of the file can start the sync, so the
 * thread needs no MPI. It detects new data by the modification time; that is coarse, so the
 * thread syncs once more after the last change.
 */
#define _GNU_SOURCE
#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAUSE_MS = 20,
};

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Waits for a wake-up or PAUSE_MS. Returns whether to continue. */
static bool rest(struct lemon_push *push)
{
    struct pollfd wake = {push->wake, POLLIN, 0};
    eventfd_t woken;
    if (poll(&wake, 1, PAUSE_MS) > 0)
        eventfd_read(push->wake, &woken);
    return !push->stop;
}

/* Syncs changes since the last call. Returns 0 or an errno. */
static int sync_changes(struct lemon_push *push, bool moved, struct timespec *last, bool *quiet)
{
    struct stat st;
    if (fstat(push->fd, &st) != 0)
        return errno;
    bool changed = !same_time(&st.st_mtim, last);
    bool due = changed || !*quiet || moved;
    *quiet = !changed;
    *last = st.st_mtim;
    return due && fdatasync(push->fd) != 0 ? errno : 0;
}

static void *run(void *context)
{
    struct lemon_push *push = context;
    struct timespec last = {0};
    bool quiet = false; /* nothing has changed since the sync before the last one */
    while (rest(push)) {
        bool moved = push->moved && !push->clean;
        int err = sync_changes(push, moved, &last, &quiet);
        if (err && !push->error)
            push->error = err;
        if (moved)
            push->clean = true;
    }
    return NULL;
}

void lemon_push_moved(struct lemon_push *push)
{
    if (!push->started)
        return;
    push->moved = true;
    eventfd_write(push->wake, 1);
}

bool lemon_push_clean(struct lemon_push *push)
{
    return !push->started || push->clean;
}

/* Blocks all signals in the thread: the program's own threads handle them. */
static bool start(struct lemon_push *push)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&push->thread, NULL, run, push);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0;
}

static void release(struct lemon_push *push)
{
    push->started = false;
    if (push->fd >= 0)
        close(push->fd);
    if (push->wake >= 0)
        close(push->wake);
}

void lemon_push_start(struct lemon_push *push, const char *path)
{
    *push = (struct lemon_push){.fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC),
                                .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    push->started = push->fd >= 0 && push->wake >= 0 && start(push);
    if (!push->started)
        release(push);
}

int lemon_push_stop(struct lemon_push *push)
{
    if (!push->started)
        return 0;
    push->stop = true;
    eventfd_write(push->wake, 1);
    pthread_join(push->thread, NULL);
    release(push);
    return push->error;
}
