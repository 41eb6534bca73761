/* worker.c - a worker's windows, and its replies and error messages */
#define _GNU_SOURCE
#include "worker.h"
#include "report.h"
#include "watchdog.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    REPLY_MS = 30 * 1000, /* the server never blocks for long */
};

void job_worker_abort(struct job_worker *worker, const char *format, ...)
{
    char text[LIMEJOB_PATH_MAX + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    job_report("rank %d on %s: %s", worker->rank, worker->host, text);
    job_watchdog_abort();
}

void job_worker_reply(struct job_worker *worker, const struct limejob_packet *reply)
{
    if (limejob_send(&worker->channel, reply, REPLY_MS) != 0)
        job_watchdog_abort(); /* the server has ended, or ends the job after an error */
}

void job_worker_pause(int us)
{
    struct timespec time = {0, us * 1000L};
    if (us)
        nanosleep(&time, NULL);
    else
        sched_yield();
}

void job_worker_map(struct job_worker *worker, struct limejob_packet *packet)
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
    limejob_reply_init(&reply, packet, err, err ? "cannot map the window" : NULL);
    job_worker_reply(worker, &reply);
}

void job_worker_unmap(struct job_worker *worker, struct limejob_packet *packet)
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
    limejob_reply_init(&reply, packet, 0, NULL);
    job_worker_reply(worker, &reply);
}
