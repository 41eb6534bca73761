/*
 * extent.c - an extent, read by all ranks: each reads the part that Lemon's plan gives it.
 *
 * Ranks on rank 0's host read into the client's window. The others read into buffers, part by
 * part, and send these to rank 0, which receives them in the window; while a part travels, the
 * next one is read. Rank 0 posts its receives before it reads its own part, and waits for none
 * of them: it goes on with the next command, and replies to this one when all is there.
 *
 * Messages between two ranks keep their order, and all ranks obey in the same order. So one
 * tag is enough, and a part that cannot be read is an empty message.
 */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    TAG = 1,
    ALIGN = LIMEJOB_ALIGN,
    BUFFER = JOB_PART + ALIGN,
    SPINS = 50,
    PAUSE_US = 50,
};

/* Of the extent that a command names. */
struct extent {
    struct job_container *container;
    uint32_t window;
    int64_t offset, bytes;
    uint64_t at;
    struct lemon_plan plan;
};

struct job_arrival {
    uint16_t opcode;
    uint64_t tag;
    int waiting; /* receives, and 1 for rank 0's own part */
    uint64_t got;
    int code;
    char text[JOB_TEXT_MAX];
};

/* What a receive is for. */
struct job_part {
    struct job_arrival *arrival;
    int bytes, from; /* that are wanted, and from which rank */
};

/* ---- who reads what ---- */

static void make_plan(struct job_worker *worker, struct extent *extent)
{
    for (int i = 0; i < worker->ranks; i++) {
        struct lemon_box *box = &worker->boxes[i];
        box->dims = 1;
        box->extent[0] = extent->bytes;
        box->start[0] = 0;
        box->sites[0] = i == 0 ? extent->bytes : 0;
        box->site_bytes = 1;
    }
    lemon_plan_make(&extent->plan, worker->boxes, worker->ranks, extent->offset,
                    &extent->container->lemon->hints);
}

/* Offsets count from the start of the extent. */
static void range_of(const struct extent *extent, int rank, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (rank < extent->plan.movers)
        lemon_plan_range(&extent->plan, rank, from, to);
}

static int parse(struct job_worker *worker, struct limejob_packet *packet,
                 struct extent *extent)
{
    extent->container = job_container_find(worker, limejob_get_u32(packet));
    extent->window = limejob_get_u32(packet);
    extent->offset = (int64_t)limejob_get_u64(packet);
    extent->bytes = (int64_t)limejob_get_u64(packet);
    extent->at = limejob_get_u64(packet);
    if (packet->broken || !extent->container)
        return EBADF;
    make_plan(worker, extent);
    return 0;
}

static char *place_of(const struct job_worker *worker, const struct extent *extent)
{
    for (const struct job_mapping *i = worker->mappings; i; i = i->next)
        if (i->id == extent->window && i->window.data &&
            extent->at + (uint64_t)extent->bytes <= i->window.bytes)
            return i->window.data + extent->at;
    return NULL;
}

/* ---- reading ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* 0 or an errno, with words. */
static int read_range(struct job_worker *worker, const struct extent *extent, char *to,
                      int64_t from, int64_t bytes, char *text, size_t cap)
{
    worker->words[0] = '\0';
    if (lemon_move_bytes(extent->container->lemon, LEMON_READ, to, bytes,
                         extent->offset + from) == LEMON_SUCCESS)
        return 0;
    snprintf(text, cap, "%.100s: %.300s: %.200s", worker->host, extent->container->path,
             worker->words[0] ? worker->words : "read: failed");
    return EIO;
}

/* While receives are posted, MPI is looked after between the parts. */
static int read_own(struct job_worker *worker, const struct extent *extent, char *window,
                    uint64_t *got, char *text, size_t cap)
{
    int64_t from, to;
    range_of(extent, worker->rank, &from, &to);
    int64_t step = worker->receive_count ? JOB_PART : to - from;
    for (int64_t at = from; at < to; at += step) {
        int64_t bytes = smaller(step, to - at);
        int code = read_range(worker, extent, window + at, at, bytes, text, cap);
        if (code)
            return code;
        *got += (uint64_t)bytes;
        job_extent_progress(worker);
    }
    return 0;
}

static void answer(struct job_worker *worker, uint16_t opcode, uint64_t tag, int code,
                   const char *text, uint64_t got)
{
    struct limejob_packet reply, of;
    limejob_request(&of, opcode, tag);
    limejob_reply(&reply, &of, code, text);
    if (!code)
        limejob_put_u64(&reply, got);
    job_worker_answer(worker, &reply);
}

/* ---- to rank 0 ---- */

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
            job_worker_pause(looks > SPINS ? PAUSE_US : 0);
    }
}

static void send_range(struct job_worker *worker, const struct extent *extent,
                       const struct limejob_packet *packet)
{
    uint64_t got = 0;
    int64_t from, to;
    int code = 0;
    char text[JOB_TEXT_MAX] = "";
    range_of(extent, worker->rank, &from, &to);
    for (int64_t at = from; at < to; at += JOB_PART) {
        int i = free_buffer(worker);
        /* As in the file: direct reads want memory and file aligned alike. */
        char *buffer = worker->buffers + (size_t)i * BUFFER + (extent->offset + at) % ALIGN;
        int64_t bytes = smaller(JOB_PART, to - at);
        if (!code)
            code = read_range(worker, extent, buffer, at, bytes, text, sizeof text);
        MPI_Isend(buffer, code ? 0 : (int)bytes, MPI_BYTE, 0, TAG, worker->comm,
                  &worker->sends[i]);
        got += code ? 0 : (uint64_t)bytes;
    }
    answer(worker, packet->opcode, packet->tag, code, text, got);
}

/* ---- at rank 0 ---- */

static void reserve_receives(struct job_worker *worker, int more)
{
    int capacity = worker->receive_capacity;
    if (worker->receive_count + more <= capacity)
        return;
    capacity = (worker->receive_count + more) * 2;
    worker->receives = realloc(worker->receives, (size_t)capacity * sizeof *worker->receives);
    worker->parts = realloc(worker->parts, (size_t)capacity * sizeof *worker->parts);
    if (!worker->receives || !worker->parts)
        job_worker_fault(worker, "out of memory"); /* the others send already */
    worker->receive_capacity = capacity;
}

static void post(struct job_worker *worker, const struct extent *extent, int rank, char *window,
                 struct job_arrival *arrival)
{
    int64_t from, to;
    range_of(extent, rank, &from, &to);
    reserve_receives(worker, (int)((to - from) / JOB_PART + 1));
    for (int64_t at = from; at < to; at += JOB_PART) {
        int bytes = (int)smaller(JOB_PART, to - at), i = worker->receive_count++;
        worker->parts[i] = (struct job_part){arrival, bytes, rank};
        arrival->waiting++;
        MPI_Irecv(window + at, bytes, MPI_BYTE, rank, TAG, worker->comm, &worker->receives[i]);
    }
}

static void finish_if_complete(struct job_worker *worker, struct job_arrival *arrival)
{
    if (arrival->waiting > 0)
        return;
    answer(worker, arrival->opcode, arrival->tag, arrival->code, arrival->text, arrival->got);
    free(arrival);
}

/* An empty message says that its sender, which tells the server why, could not read. */
static void take_part(struct job_worker *worker, const struct job_part *part, int bytes)
{
    struct job_arrival *arrival = part->arrival;
    if (bytes != part->bytes && !arrival->code)
        arrival->code = EIO;
    arrival->waiting--;
    finish_if_complete(worker, arrival);
}

static bool take_arrived(struct job_worker *worker)
{
    bool any = false;
    for (int i = 0; i < worker->receive_count;) {
        MPI_Status status;
        int done = 0, bytes = 0;
        MPI_Test(&worker->receives[i], &done, &status);
        if (!done) {
            i++;
            continue;
        }
        struct job_part part = worker->parts[i];
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        worker->receive_count--;
        worker->receives[i] = worker->receives[worker->receive_count];
        worker->parts[i] = worker->parts[worker->receive_count];
        take_part(worker, &part, bytes);
        any = true;
    }
    return any;
}

static void receive_and_read(struct job_worker *worker, const struct extent *extent,
                             char *window, const struct limejob_packet *packet)
{
    struct job_arrival *arrival = calloc(1, sizeof *arrival);
    if (!arrival)
        job_worker_fault(worker, "out of memory");
    arrival->opcode = packet->opcode;
    arrival->tag = packet->tag;
    arrival->waiting = 1;
    for (int i = 1; i < worker->ranks; i++)
        if (!worker->places[i].local)
            post(worker, extent, i, window, arrival);
    char text[JOB_TEXT_MAX] = "";
    uint64_t got = 0;
    int code = read_own(worker, extent, window, &got, text, sizeof text);
    if (code) {
        arrival->code = code;
        memcpy(arrival->text, text, sizeof text);
    }
    arrival->got = got;
    arrival->waiting--;
    finish_if_complete(worker, arrival);
}

/* ---- all ranks ---- */

static void read_locally(struct job_worker *worker, const struct extent *extent, char *window,
                         const struct limejob_packet *packet)
{
    char text[JOB_TEXT_MAX] = "";
    uint64_t got = 0;
    int code = read_own(worker, extent, window, &got, text, sizeof text);
    answer(worker, packet->opcode, packet->tag, code, text, got);
}

void job_extent_read(struct job_worker *worker, struct limejob_packet *packet)
{
    struct extent extent;
    int code = parse(worker, packet, &extent);
    char *window = code ? NULL : place_of(worker, &extent);
    if (code || (worker->places[worker->rank].local && !window))
        job_worker_fault(worker, "read: no such container or window"); /* others may send */
    if (!worker->places[worker->rank].local)
        send_range(worker, &extent, packet);
    else if (worker->rank == 0)
        receive_and_read(worker, &extent, window, packet);
    else
        read_locally(worker, &extent, window, packet);
}

bool job_extent_progress(struct job_worker *worker)
{
    int index, done = 0;
    if (worker->rank == 0)
        return worker->receive_count > 0 && take_arrived(worker);
    if (!job_extent_busy(worker))
        return false;
    MPI_Testany(JOB_SENDS, worker->sends, &index, &done, MPI_STATUS_IGNORE);
    return done;
}

bool job_extent_busy(const struct job_worker *worker)
{
    if (worker->rank == 0)
        return worker->receive_count > 0;
    for (int i = 0; i < JOB_SENDS; i++)
        if (worker->sends[i] != MPI_REQUEST_NULL)
            return true;
    return false;
}
