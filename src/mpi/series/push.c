/*
 * push.c - brings a file's data to the disk while they are written
 *
 * What MPI-IO writes goes to the page cache, where the kernel leaves it for a while; the sync
 * at the end would then wait for all of it. Any descriptor of the file will do, and so the
 * thread needs nothing of MPI. It finds out by the time of modification that there is something
 * to do; times are coarse, so it looks once more after the last change.
 */
#define _GNU_SOURCE
#include "series.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE_MS = 20,
};

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Under the mutex. Whether to go on. */
static bool rest(struct lemon_push *push)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += PAUSE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int err = 0;
    while (!push->stop && err != ETIMEDOUT && !(push->moved && !push->clean))
        err = pthread_cond_timedwait(&push->wake, &push->mutex, &until);
    return !push->stop;
}

/* What has changed since the last time, goes to the disk. An errno. */
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
    pthread_mutex_lock(&push->mutex);
    while (rest(push)) {
        bool moved = push->moved && !push->clean;
        pthread_mutex_unlock(&push->mutex);
        int err = sync_changes(push, moved, &last, &quiet);
        pthread_mutex_lock(&push->mutex);
        push->clean = push->clean || moved;
        if (err && !push->error)
            push->error = err;
    }
    pthread_mutex_unlock(&push->mutex);
    return NULL;
}

void lemon_push_moved(struct lemon_push *push)
{
    if (!push->started)
        return;
    pthread_mutex_lock(&push->mutex);
    push->moved = true;
    pthread_cond_signal(&push->wake);
    pthread_mutex_unlock(&push->mutex);
}

bool lemon_push_clean(struct lemon_push *push)
{
    if (!push->started)
        return true;
    pthread_mutex_lock(&push->mutex);
    bool clean = push->clean;
    pthread_mutex_unlock(&push->mutex);
    return clean;
}

/* Signals are for the program's own threads. */
static bool start(struct lemon_push *push)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&push->thread, NULL, run, push);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0;
}

void lemon_push_start(struct lemon_push *push, const char *path)
{
    pthread_condattr_t monotonic;
    *push = (struct lemon_push){.fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC)};
    if (push->fd < 0)
        return;
    pthread_mutex_init(&push->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&push->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    push->started = start(push);
    if (push->started)
        return;
    pthread_cond_destroy(&push->wake);
    pthread_mutex_destroy(&push->mutex);
    close(push->fd);
}

int lemon_push_stop(struct lemon_push *push)
{
    if (!push->started)
        return 0;
    pthread_mutex_lock(&push->mutex);
    push->stop = true;
    pthread_cond_signal(&push->wake);
    pthread_mutex_unlock(&push->mutex);
    pthread_join(push->thread, NULL);
    pthread_cond_destroy(&push->wake);
    pthread_mutex_destroy(&push->mutex);
    close(push->fd);
    push->started = false;
    return push->error;
}
