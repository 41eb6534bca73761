/* extent.c - an extent: who has which part, and rank 0's messages to and from the others */
#define _GNU_SOURCE
#include "extent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A command of which parts travel. */
struct job_transfer {
    uint16_t opcode;
    uint64_t tag;
    int waiting; /* messages, and 1 for this rank's own part */
    uint64_t moved;
    int code;
    char text[JOB_TEXT_MAX];
};

/* What a message is for. */
struct job_part {
    struct job_transfer *transfer;
    int bytes; /* that are wanted; 0: it is sent */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- who moves what ---- */

/* What is written is divided between blocks: no two ranks ever write into the same one. */
static struct lemon_plan_hints hints_of(const struct job_extent *extent)
{
    struct lemon_plan_hints hints = extent->container->hints;
    if (extent->direction == LEMON_WRITE)
        hints.stripe = (hints.stripe + LIMEJOB_ALIGN - 1) & -(int64_t)LIMEJOB_ALIGN;
    return hints;
}

static void share_out(struct job_worker *worker, struct job_extent *extent)
{
    struct lemon_plan_hints hints = hints_of(extent);
    lemon_share_make(&extent->share, extent->bytes, worker->ranks, extent->offset, &hints);
}

void job_extent_range(const struct job_extent *extent, int rank, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (rank < extent->share.movers)
        lemon_share_range(&extent->share, rank, from, to);
}

static char *find_window(const struct job_worker *worker, uint32_t id, uint64_t at,
                         uint64_t bytes)
{
    for (const struct job_mapping *i = worker->mappings; i; i = i->next)
        if (i->id == id && i->window.data && at + bytes <= i->window.bytes)
            return i->window.data + at;
    return NULL;
}

void job_extent_parse(struct job_worker *worker, struct limejob_packet *packet,
                      enum lemon_direction direction, struct job_extent *extent)
{
    *extent = (struct job_extent){.direction = direction};
    extent->container = job_container_find(worker, limejob_get_u32(packet));
    uint32_t window = limejob_get_u32(packet);
    extent->offset = (int64_t)limejob_get_u64(packet);
    extent->bytes = (int64_t)limejob_get_u64(packet);
    uint64_t at = limejob_get_u64(packet);
    extent->window = find_window(worker, window, at, (uint64_t)extent->bytes);
    if (direction == LEMON_WRITE) {
        uint64_t gate = limejob_get_u64(packet);
        extent->permit.until = limejob_get_u64(packet);
        extent->permit.uid = limejob_get_u32(packet);
        if (gate != UINT64_MAX)
            extent->permit.gate =
                (const limejob_gate *)find_window(worker, window, gate, sizeof(uint32_t));
    }
    if (packet->broken || !extent->container ||
        (worker->places[worker->rank].local && !extent->window))
        job_worker_fault(worker, "%s: no such container or window",
                         direction == LEMON_READ ? "read" : "write");
    share_out(worker, extent);
}

char *job_extent_buffer(const struct job_worker *worker, const struct job_extent *extent,
                        int index, int64_t from)
{
    return worker->buffers + (size_t)index * JOB_BUFFER +
           (extent->offset + from) % LIMEJOB_ALIGN;
}

void job_extent_answer(struct job_worker *worker, const struct limejob_packet *packet, int code,
                       const char *text, uint64_t bytes)
{
    struct limejob_packet reply;
    limejob_reply(&reply, packet, code, text);
    if (!code)
        limejob_put_u64(&reply, bytes);
    job_worker_answer(worker, &reply);
}

/* ---- rank 0's messages ---- */

static void reserve_messages(struct job_worker *worker, int more)
{
    int capacity = worker->message_capacity;
    if (worker->message_count + more <= capacity)
        return;
    capacity = (worker->message_count + more) * 2;
    worker->messages = realloc(worker->messages, (size_t)capacity * sizeof *worker->messages);
    worker->parts = realloc(worker->parts, (size_t)capacity * sizeof *worker->parts);
    if (!worker->messages || !worker->parts)
        job_worker_fault(worker, "out of memory"); /* the others have begun already */
    worker->message_capacity = capacity;
}

static void post(struct job_worker *worker, const struct job_extent *extent, int rank,
                 struct job_transfer *transfer)
{
    int64_t from, to;
    bool send = extent->direction == LEMON_WRITE;
    job_extent_range(extent, rank, &from, &to);
    reserve_messages(worker, (int)((to - from) / JOB_PART + 1));
    for (int64_t at = from; at < to; at += JOB_PART) {
        int bytes = (int)smaller(JOB_PART, to - at), i = worker->message_count++;
        worker->parts[i] = (struct job_part){transfer, send ? 0 : bytes};
        transfer->waiting++;
        if (send)
            MPI_Isend(extent->window + at, bytes, MPI_BYTE, rank, JOB_TAG_WRITE, worker->comm,
                      &worker->messages[i]);
        else
            MPI_Irecv(extent->window + at, bytes, MPI_BYTE, rank, JOB_TAG_READ, worker->comm,
                      &worker->messages[i]);
    }
}

static void finish_if_complete(struct job_worker *worker, struct job_transfer *transfer)
{
    struct limejob_packet command;
    if (--transfer->waiting > 0)
        return;
    limejob_request(&command, transfer->opcode, transfer->tag);
    job_extent_answer(worker, &command, transfer->code, transfer->text, transfer->moved);
    free(transfer);
}

/* An empty message says that its sender, which tells the server why, could not read. */
static void take_part(struct job_worker *worker, const struct job_part *part,
                      const MPI_Status *status)
{
    int bytes = 0;
    if (part->bytes)
        MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != part->bytes && !part->transfer->code)
        part->transfer->code = EIO;
    finish_if_complete(worker, part->transfer);
}

static bool take_messages(struct job_worker *worker)
{
    bool any = false;
    for (int i = 0; i < worker->message_count;) {
        MPI_Status status;
        int done = 0;
        MPI_Test(&worker->messages[i], &done, &status);
        if (!done) {
            i++;
            continue;
        }
        struct job_part part = worker->parts[i];
        worker->message_count--;
        worker->messages[i] = worker->messages[worker->message_count];
        worker->parts[i] = worker->parts[worker->message_count];
        take_part(worker, &part, &status);
        any = true;
    }
    return any;
}

/* ---- on rank 0's host ---- */

/* While messages are under way, MPI is looked after between parts, which end with blocks. */
static int64_t end_of_part(const struct job_worker *worker, const struct job_extent *extent,
                           int64_t at, int64_t to)
{
    if (worker->message_count == 0)
        return to;
    return smaller(to, at + JOB_PART - (extent->offset + at) % LIMEJOB_ALIGN);
}

static int move_own(struct job_worker *worker, const struct job_extent *extent, job_mover *move,
                    struct job_transfer *transfer)
{
    int64_t at, to;
    job_extent_range(extent, worker->rank, &at, &to);
    while (at < to) {
        char text[JOB_TEXT_MAX] = "";
        int64_t bytes = end_of_part(worker, extent, at, to) - at;
        int code = move(worker, extent, extent->window + at, at, bytes, text, sizeof text);
        if (code) {
            memcpy(transfer->text, text, sizeof text);
            return code;
        }
        transfer->moved += (uint64_t)bytes;
        at += bytes;
        job_extent_progress(worker);
    }
    return transfer->code;
}

void job_extent_move(struct job_worker *worker, const struct job_extent *extent,
                     const struct limejob_packet *packet, job_mover *move)
{
    struct job_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer)
        job_worker_fault(worker, "out of memory");
    transfer->opcode = packet->opcode;
    transfer->tag = packet->tag;
    transfer->waiting = 1;
    for (int i = 1; i < worker->ranks && worker->rank == 0; i++)
        if (!worker->places[i].local)
            post(worker, extent, i, transfer);
    transfer->code = move_own(worker, extent, move, transfer);
    finish_if_complete(worker, transfer);
}

/* ---- between commands ---- */

bool job_extent_progress(struct job_worker *worker)
{
    int index, done = 0;
    if (worker->rank == 0)
        return worker->message_count > 0 && take_messages(worker);
    if (!job_extent_busy(worker))
        return false;
    MPI_Testany(JOB_SENDS, worker->sends, &index, &done, MPI_STATUS_IGNORE);
    return done;
}

bool job_extent_busy(const struct job_worker *worker)
{
    if (worker->rank == 0)
        return worker->message_count > 0;
    for (int i = 0; i < JOB_SENDS; i++)
        if (worker->sends[i] != MPI_REQUEST_NULL)
            return true;
    return false;
}
