/* watchdog.c - end a rank whose job is broken */
#define _GNU_SOURCE
#include "watchdog.h"
#include "listen.h"

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
    pid_t parent; /* process id; 0: not started by mpirun */
    int signals, end_event, wake_event;
    atomic_int channel; /* the socket to watch; -1: none */
    atomic_bool is_ending;
} watch = {.channel = -1};

/* ---- the end ---- */

/* mpirun removes MPI's shared memory, but not if mpirun is killed. */
static void remove_shared_memory(void)
{
    char line[4096 + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/'), *name = strrchr(line, '/');
        line[strcspn(line, "\n")] = '\0';
        if (path && (strncmp(name, "/vader_segment.", 15) == 0 || /* Open MPI 4, 5 */
                     strncmp(name, "/sm_segment.", 12) == 0))
            unlink(path);
    }
    if (maps)
        fclose(maps);
}

void job_watchdog_abort(void)
{
    if (atomic_exchange(&watch.is_ending, true))
        pause(); /* another thread ends the process */
    job_listen_remove();
    remove_shared_memory();
    _exit(1);
}

/* ---- the thread ---- */

static void handle_signal(void)
{
    struct signalfd_siginfo info;
    uint64_t one = 1;
    if (read(watch.signals, &info, sizeof info) <= 0)
        return;
    if (watch.parent && getppid() != watch.parent)
        job_watchdog_abort();
    if (write(watch.end_event, &one, sizeof one) < 0)
        job_watchdog_abort();
}

/* Requests SIGTERM for the process when its parent ends. The watchdog makes the request,
 * because the kernel would drop it when a worker changes its user (credentials.h). */
static void request_parent_signal(void)
{
    if (!watch.parent)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != watch.parent)
        job_watchdog_abort(); /* the parent ended before prctl() */
}

static void *run_watchdog(void *unused)
{
    (void)unused;
    request_parent_signal();
    for (;;) {
        uint64_t count;
        struct pollfd fds[3] = {{watch.signals, POLLIN, 0},
                                {atomic_load(&watch.channel), POLLRDHUP, 0},
                                {watch.wake_event, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[0].revents)
            handle_signal();
        if (fds[1].revents && atomic_load(&watch.channel) >= 0)
            job_watchdog_abort();
        if (fds[2].revents && read(watch.wake_event, &count, sizeof count) < 0)
            return NULL;
    }
}

/* ---- called by other threads ---- */

static void block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* new threads inherit the mask */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* write() then fails with EFBIG */
    watch.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void find_parent(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))
        watch.parent = getppid(); /* a job started by hand may outlive its shell */
}

int job_watchdog_start(int *end_event)
{
    pthread_t thread;
    block_signals();
    find_parent();
    watch.wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch.end_event = *end_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch.signals < 0 || watch.wake_event < 0 || *end_event < 0)
        return -errno;
    int err = pthread_create(&thread, NULL, run_watchdog, NULL);
    if (!err)
        pthread_detach(thread);
    return -err;
}

void job_watchdog_watch(int fd)
{
    uint64_t one = 1;
    atomic_store(&watch.channel, fd);
    if (write(watch.wake_event, &one, sizeof one) < 0)
        job_watchdog_abort();
}

void job_watchdog_stop(void)
{
    job_watchdog_watch(-1);
}
