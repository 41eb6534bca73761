/*
 * writeback.c - a thread that syncs a checkpoint's file while MPI-IO writes to it
 *
 * MPI-IO writes into the page cache. The kernel would keep the data there for some time, and
 * the final sync would wait for all of them. fdatasync() works on any descriptor of the file,
 * so the thread needs no MPI. A new modification time shows that there are new data. The time
 * has a resolution of some ms, so some new data may leave it unchanged. The thread therefore
 * syncs once more when it first finds the time unchanged.
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
    PAUSE_MS = 20, /* between checks for new data */
};

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Waits for a wake-up or PAUSE_MS. Returns false if the thread must end. */
static bool wait_for_wake_up(struct lemon_writeback *writeback)
{
    struct pollfd wake = {writeback->wake_fd, POLLIN, 0};
    eventfd_t value;
    if (poll(&wake, 1, PAUSE_MS) > 0)
        eventfd_read(writeback->wake_fd, &value);
    return !writeback->stop;
}

/* Syncs if this call or the previous one finds changes, or if data_complete. 0 or an errno. */
static int sync_changes(struct lemon_writeback *writeback, bool data_complete,
                        struct timespec *last, bool *was_unchanged)
{
    struct stat st;
    if (fstat(writeback->fd, &st) != 0)
        return errno;
    bool changed = !is_same_time(&st.st_mtim, last);
    bool is_due = changed || !*was_unchanged || data_complete;
    *was_unchanged = !changed;
    *last = st.st_mtim;
    return is_due && fdatasync(writeback->fd) != 0 ? errno : 0;
}

static void *run_writeback(void *context)
{
    struct lemon_writeback *writeback = context;
    struct timespec last = {0};
    bool was_unchanged = false;
    while (wait_for_wake_up(writeback)) {
        bool data_complete = writeback->data_complete && !writeback->is_synced;
        int err = sync_changes(writeback, data_complete, &last, &was_unchanged);
        if (err && !writeback->error)
            writeback->error = err;
        if (data_complete)
            writeback->is_synced = true;
    }
    return NULL;
}

void lemon_writeback_data_complete(struct lemon_writeback *writeback)
{
    if (!writeback->started)
        return;
    writeback->data_complete = true;
    eventfd_write(writeback->wake_fd, 1);
}

bool lemon_writeback_is_done(struct lemon_writeback *writeback)
{
    return !writeback->started || writeback->is_synced;
}

/* Starts the thread with all signals blocked, so that the program's own threads handle them. */
static bool start_thread(struct lemon_writeback *writeback)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&writeback->thread, NULL, run_writeback, writeback);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0;
}

static void release_writeback(struct lemon_writeback *writeback)
{
    writeback->started = false;
    if (writeback->fd >= 0)
        close(writeback->fd);
    if (writeback->wake_fd >= 0)
        close(writeback->wake_fd);
}

void lemon_writeback_start(struct lemon_writeback *writeback, const char *path)
{
    *writeback = (struct lemon_writeback){.fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC),
                                          .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    writeback->started =
        writeback->fd >= 0 && writeback->wake_fd >= 0 && start_thread(writeback);
    if (!writeback->started)
        release_writeback(writeback);
}

int lemon_writeback_stop(struct lemon_writeback *writeback)
{
    if (!writeback->started)
        return 0;
    writeback->stop = true;
    eventfd_write(writeback->wake_fd, 1);
    pthread_join(writeback->thread, NULL);
    release_writeback(writeback);
    return writeback->error;
}
