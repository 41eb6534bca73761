/* watch.c - what ends a rank out of order */
#define _GNU_SOURCE
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

static struct {
    pid_t parent; /* 0: nobody's */
    int channel_fd, signals, wants_end;
    atomic_bool relaxed, ending;
    void (*remove)(void);
} watch;

/* ---- signals and the parent ---- */

int job_watch_signals(int *signals)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* threads inherit it */
    signal(SIGPIPE, SIG_IGN);
    *signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *signals < 0 ? -errno : 0;
}

void job_watch_parent(void)
{
    if (!getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMI_SIZE"))
        return; /* started by hand: a shell may end before us */
    watch.parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

bool job_watch_parent_is_gone(void)
{
    return watch.parent && getppid() != watch.parent;
}

/* ---- the end ---- */

/* MPI's shared memory is cleared away by mpirun; but who clears up if mpirun is killed? */
static void remove_shared_memory(void)
{
    char line[4096 + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/'), *name = strrchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (path && strncmp(name, "/vader_segment.", 15) == 0)
            unlink(path);
    }
    if (maps)
        fclose(maps);
}

void job_watch_on_end(void (*remove)(void))
{
    watch.remove = remove;
}

void job_watch_end(void)
{
    if (atomic_exchange(&watch.ending, true))
        pause(); /* another thread is on it */
    if (watch.remove)
        watch.remove();
    remove_shared_memory();
    _exit(1);
}

/* ---- the thread ---- */

static void take_signal(void)
{
    struct signalfd_siginfo info;
    uint64_t one = 1;
    if (read(watch.signals, &info, sizeof info) <= 0)
        return;
    if (job_watch_parent_is_gone())
        job_watch_end();
    if (write(watch.wants_end, &one, sizeof one) < 0)
        job_watch_end();
}

static void *run(void *unused)
{
    (void)unused;
    for (;;) {
        struct pollfd fds[2] = {{watch.signals, POLLIN, 0}, {watch.channel_fd, POLLRDHUP, 0}};
        if (atomic_load(&watch.relaxed))
            fds[1].fd = -1;
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents)
            take_signal();
        if (fds[1].revents && !atomic_load(&watch.relaxed))
            job_watch_end();
    }
}

int job_watch_start(int channel_fd, int signals, int *wants_end)
{
    pthread_t thread;
    watch.channel_fd = channel_fd;
    watch.signals = signals;
    watch.wants_end = *wants_end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*wants_end < 0)
        return -errno;
    int err = pthread_create(&thread, NULL, run, NULL);
    if (!err)
        pthread_detach(thread);
    return -err;
}

void job_watch_relax(void)
{
    atomic_store(&watch.relaxed, true);
}
