/* worker.c - the loop of a worker */
#define _GNU_SOURCE
#include "worker.h"
#include "say.h"
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    ANSWER_MS = 30 * 1000, /* the server never waits for long */
    SPINS = 50,            /* looks at MPI before it sleeps between them */
    PAUSE_US = 50,
};

void job_worker_fault(struct job_worker *worker, const char *format, ...)
{
    char text[LIMEJOB_PATH_MAX + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    job_say("rank %d on %s: %s", worker->rank, worker->host, text);
    job_watch_end();
}

/* ---- to and from the server ---- */

void job_worker_answer(struct job_worker *worker, const struct limejob_packet *reply)
{
    if (limejob_send(&worker->channel, reply, ANSWER_MS) != 0)
        job_watch_end(); /* the server is gone, or has found a fault and said so */
}

void job_worker_pause(int us)
{
    struct timespec time = {0, us * 1000L};
    if (us)
        nanosleep(&time, NULL);
    else
        sched_yield();
}

/* ---- windows ---- */

static void map_window(struct job_worker *worker, struct limejob_packet *packet)
{
    struct limejob_packet reply;
    int fd = packet->fd, err = 0;
    struct job_mapping *mapping = calloc(1, sizeof *mapping);
    packet->fd = -1;
    if (!mapping)
        err = -ENOMEM;
    else {
        mapping->id = limejob_get_u32(packet);
        if (fd >= 0)
            err = limejob_window_map(&mapping->window, fd, limejob_get_u64(packet));
        else
            mapping->window.fd = -1;
    }
    if (err && mapping)
        free(mapping);
    else if (mapping) {
        mapping->next = worker->mappings;
        worker->mappings = mapping;
    }
    limejob_reply(&reply, packet, err, err ? "the window cannot be mapped" : NULL);
    job_worker_answer(worker, &reply);
}

static void unmap_window(struct job_worker *worker, struct limejob_packet *packet)
{
    struct limejob_packet reply;
    uint32_t id = limejob_get_u32(packet);
    for (struct job_mapping **at = &worker->mappings; *at; at = &(*at)->next)
        if ((*at)->id == id) {
            struct job_mapping *mapping = *at;
            *at = mapping->next;
            limejob_window_release(&mapping->window);
            free(mapping);
            break;
        }
    limejob_reply(&reply, packet, 0, NULL);
    job_worker_answer(worker, &reply);
}

/* ---- commands ---- */

/* False: the end. */
static bool obey(struct job_worker *worker, struct limejob_packet *packet)
{
    switch (packet->opcode) {
    case JOB_WINDOW:
        map_window(worker, packet);
        return true;
    case JOB_UNMAP:
        unmap_window(worker, packet);
        return true;
    case JOB_OPEN:
        job_container_open(worker, packet);
        return true;
    case JOB_CLOSE:
        job_container_close(worker, packet);
        return true;
    case JOB_READ:
        job_extent_read(worker, packet);
        return true;
    case JOB_WRITE:
        job_extent_write(worker, packet);
        return true;
    case JOB_SYNC:
        job_extent_sync(worker, packet);
        return true;
    case JOB_END:
        return false;
    default:
        job_worker_fault(worker, "unknown command: %d", packet->opcode);
    }
}

static void pass_signal_on(struct job_worker *worker)
{
    uint64_t count;
    struct limejob_packet packet;
    if (read(worker->wants_end, &count, sizeof count) <= 0)
        return;
    limejob_request(&packet, JOB_WANTS_END, 0);
    job_worker_answer(worker, &packet);
}

/* Until there is a command, or something may have come over MPI. */
static void wait_for_work(struct job_worker *worker)
{
    static int idle; /* looks in vain */
    struct pollfd fds[2] = {{worker->channel.fd, POLLIN, 0},
                            {worker->rank ? worker->wants_end : -1, POLLIN, 0}};
    struct timespec time = {0, 0}, *limit = NULL;
    if (job_extent_progress(worker))
        idle = 0;
    else
        idle++;
    if (job_extent_busy(worker)) {
        time.tv_nsec = idle > SPINS ? PAUSE_US * 1000L : 0;
        limit = &time;
    }
    if (ppoll(fds, 2, limit, NULL) > 0 && fds[1].revents)
        pass_signal_on(worker);
}

void job_worker_run(struct job_worker *worker)
{
    static struct limejob_packet packet;
    for (;;) {
        int done = limejob_receive(&worker->channel, &packet, 0);
        if (done < 0)
            job_watch_end();
        if (done == 0) {
            wait_for_work(worker);
            continue;
        }
        if (!obey(worker, &packet))
            return;
        if (packet.fd >= 0)
            close(packet.fd);
        job_extent_progress(worker);
    }
}
