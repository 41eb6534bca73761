/* read.c - an extent, read by all ranks; those of other hosts send what they have read to rank
 * 0, and read the next part while one travels */
#define _GNU_SOURCE
#include "extent.h"

#include <errno.h>
#include <stdio.h>

static int read_range(struct job_worker *worker, const struct job_extent *extent, char *to,
                      int64_t from, int64_t bytes, char *text, size_t cap)
{
    char why[128];
    struct lemon_range_fault fault;
    if (lemon_range_move(&extent->container->file, LEMON_READ, to, bytes, extent->offset + from,
                         &fault))
        return 0;
    lemon_range_explain(&fault, why, sizeof why);
    snprintf(text, cap, "%.100s: %.300s: %s", worker->host, extent->container->path, why);
    return EIO;
}

/* A buffer whose message has gone. */
static int free_buffer(struct job_worker *worker)
{
    for (int looks = 0;; looks++) {
        int index, done;
        for (int i = 0; i < JOB_SENDS; i++)
            if (worker->sends[i] == MPI_REQUEST_NULL)
                return i;
        MPI_Testany(JOB_SENDS, worker->sends, &index, &done, MPI_STATUS_IGNORE);
        if (!done)
            job_worker_pause(looks > JOB_SPINS ? JOB_PAUSE_US : 0);
    }
}

/* After an error, messages are empty. */
static void send_range(struct job_worker *worker, const struct job_extent *extent,
                       const struct limejob_packet *packet)
{
    uint64_t got = 0;
    int64_t from, to;
    int code = 0;
    char text[JOB_TEXT_MAX] = "";
    job_extent_range(extent, worker->rank, &from, &to);
    for (int64_t at = from; at < to; at += JOB_PART) {
        int i = free_buffer(worker);
        char *buffer = job_extent_buffer(worker, extent, i, at);
        int64_t bytes = to - at < JOB_PART ? to - at : JOB_PART;
        if (!code)
            code = read_range(worker, extent, buffer, at, bytes, text, sizeof text);
        MPI_Isend(buffer, code ? 0 : (int)bytes, MPI_BYTE, 0, JOB_TAG_READ, worker->comm,
                  &worker->sends[i]);
        got += code ? 0 : (uint64_t)bytes;
    }
    job_extent_answer(worker, packet, code, text, got);
}

void job_extent_read(struct job_worker *worker, struct limejob_packet *packet)
{
    struct job_extent extent;
    job_extent_parse(worker, packet, LEMON_READ, &extent);
    if (worker->places[worker->rank].local)
        job_extent_move(worker, &extent, packet, read_range);
    else
        send_range(worker, &extent, packet);
}
