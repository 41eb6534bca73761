/* write.c - an extent, written by all ranks; those of other hosts receive their parts from rank
 * 0, and write one while the next ones travel */
#define _GNU_SOURCE
#include "extent.h"

#include <stdio.h>
#include <string.h>

static int write_range(struct job_worker *worker, const struct job_extent *extent, char *data,
                       int64_t from, int64_t bytes, char *text, size_t cap)
{
    int64_t at = extent->offset + from;
    int code = job_store_write(extent->container, &extent->permit, data, bytes, &at);
    if (code)
        snprintf(text, cap, "%.100s: %.300s: write at %lld: %s", worker->host,
                 extent->container->path, (long long)at, strerror(code));
    return code;
}

/* ---- on other hosts ---- */

/* What this rank receives, into its buffers in turn. */
struct intake {
    int64_t asked, to; /* up to here messages are posted, and wanted */
    int posted, taken;
    MPI_Request receives[JOB_SENDS];
};

static int64_t part_of(int64_t from, int64_t to)
{
    return to - from < JOB_PART ? to - from : JOB_PART;
}

/* Buffers that reads have filled must have been sent. */
static void empty_buffers(struct job_worker *worker)
{
    for (int looks = 0; job_extent_busy(worker); looks++)
        if (!job_extent_progress(worker))
            job_worker_pause(looks > JOB_SPINS ? JOB_PAUSE_US : 0);
}

static void post_receives(struct job_worker *worker, const struct job_extent *extent,
                          struct intake *intake)
{
    while (intake->asked < intake->to && intake->posted - intake->taken < JOB_SENDS) {
        int i = intake->posted++ % JOB_SENDS;
        int64_t bytes = part_of(intake->asked, intake->to);
        MPI_Irecv(job_extent_buffer(worker, extent, i, intake->asked), (int)bytes, MPI_BYTE, 0,
                  JOB_TAG_WRITE, worker->comm, &intake->receives[i]);
        intake->asked += bytes;
    }
}

/* The oldest one; rank 0's end, or that of its host, ends this process, too. */
static int wait_for_part(struct intake *intake)
{
    int i = intake->taken % JOB_SENDS, done = 0;
    for (int looks = 0; !done; looks++) {
        MPI_Test(&intake->receives[i], &done, MPI_STATUS_IGNORE);
        if (!done)
            job_worker_pause(looks > JOB_SPINS ? JOB_PAUSE_US : 0);
    }
    return i;
}

/* After an error the rest is received all the same: rank 0 sends it. */
static void take_range(struct job_worker *worker, const struct job_extent *extent,
                       const struct limejob_packet *packet)
{
    struct intake intake = {0};
    char text[JOB_TEXT_MAX] = "";
    int64_t from;
    uint64_t written = 0;
    int code = 0;
    job_extent_range(extent, worker->rank, &from, &intake.to);
    intake.asked = from;
    empty_buffers(worker);
    while (from < intake.to) {
        int64_t bytes = part_of(from, intake.to);
        post_receives(worker, extent, &intake);
        char *buffer = job_extent_buffer(worker, extent, wait_for_part(&intake), from);
        if (!code)
            code = write_range(worker, extent, buffer, from, bytes, text, sizeof text);
        written += code ? 0 : (uint64_t)bytes;
        from += bytes;
        intake.taken++;
    }
    job_extent_answer(worker, packet, code, text, written);
}

/* ---- commands ---- */

void job_extent_write(struct job_worker *worker, struct limejob_packet *packet)
{
    struct job_extent extent;
    job_extent_parse(worker, packet, LEMON_WRITE, &extent);
    if (worker->places[worker->rank].local)
        job_extent_move(worker, &extent, packet, write_range);
    else
        take_range(worker, &extent, packet);
}

void job_extent_sync(struct job_worker *worker, struct limejob_packet *packet)
{
    struct limejob_packet reply;
    char why[MPI_MAX_ERROR_STRING] = "", text[JOB_TEXT_MAX] = "";
    struct job_container *container = job_container_find(worker, limejob_get_u32(packet));
    if (!container)
        job_worker_fault(worker, "sync: no such container"); /* others wait for this rank */
    int code = job_store_sync(container, why, sizeof why);
    if (code)
        snprintf(text, sizeof text, "%.100s: %.300s: sync: %.200s", worker->host,
                 container->path, why);
    limejob_reply(&reply, packet, code, text);
    job_worker_answer(worker, &reply);
}
