/*
 * extent.c - read or write one extent of a container by all ranks
 *
 * Each rank moves its share of the extent. Ranks on rank 0's host use the client's window.
 * Ranks on other hosts use buffers, and exchange their shares with rank 0 in parts; rank 0
 * sends from the window and receives into it. Rank 0 posts its messages before it moves its own
 * share, and does not wait for them: it executes the next commands, and replies to this command
 * when all its messages are complete.
 *
 * MPI keeps the order of messages between two ranks, and all ranks execute commands in the same
 * order, so one tag for each direction is enough.
 */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    JOB_TAG_READ = 1,
    JOB_TAG_WRITE,
    JOB_BUFFER_BYTES = JOB_MESSAGE_BYTES + LIMEJOB_ALIGN,
    JOB_SPINS = 50, /* polls of MPI before a rank sleeps between polls */
    JOB_PAUSE_US = 50,
};

/* The extent that a command names. Ranges are relative to its start. */
struct job_extent {
    struct job_container *container;
    char *window; /* start of the data; NULL on other hosts than rank 0's */
    int64_t bytes, offset;
    enum lemon_direction direction;
    struct job_write_permit permit; /* for writes */
    struct lemon_file_domains share;
};

/* Moves a range of the extent between the file and `data`. Returns 0, or an errno and fills
 * text with a message. */
typedef int job_io_func(struct job_worker *, const struct job_extent *, char *data,
                        int64_t from, int64_t bytes, char *text, size_t cap);

/* Rank 0 and ranks on its host: a command in progress. */
struct job_transfer {
    uint16_t opcode;
    uint64_t tag;
    int pending_parts; /* messages in flight, plus 1 for the rank's own share */
    uint64_t bytes_moved;
    int code;
    char text[JOB_TEXT_MAX];
};

/* The command that an MPI message belongs to. */
struct job_message {
    struct job_transfer *transfer;
    int bytes; /* expected bytes of a receive; 0 for a send */
};

/* ---- shares of the ranks ---- */

/* Writes are divided at block boundaries, so no two ranks write into the same block. */
static struct lemon_plan_hints get_share_hints(const struct job_extent *extent)
{
    struct lemon_plan_hints hints = extent->container->hints;
    if (extent->direction == LEMON_WRITE)
        hints.stripe = (hints.stripe + LIMEJOB_ALIGN - 1) & -(int64_t)LIMEJOB_ALIGN;
    return hints;
}

static void divide_extent(struct job_worker *worker, struct job_extent *extent)
{
    struct lemon_plan_hints hints = get_share_hints(extent);
    lemon_file_domains_init(&extent->share, extent->bytes, worker->ranks, extent->offset,
                            &hints);
}

/* The share of a rank; *from == *to if it is empty. */
static void get_share(const struct job_extent *extent, int rank, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (rank < extent->share.aggregators)
        lemon_file_domains_range(&extent->share, rank, from, to);
}

/* The end of the loop over a share's parts. Collective calls need the same number of parts on
 * all ranks: parts beyond `to` are empty. */
static int64_t find_parts_end(const struct job_extent *extent, int64_t from, int64_t to)
{
    int64_t longest = 0, begin, end;
    if (extent->container->io != LIMEJOB_IO_COLLECTIVE)
        return to;
    for (int rank = 0; rank < extent->share.aggregators; rank++) {
        get_share(extent, rank, &begin, &end);
        longest = end - begin > longest ? end - begin : longest;
    }
    return from + longest;
}

static int64_t clamp_part(int64_t at, int64_t part, int64_t to)
{
    return at < to ? smaller(part, to - at) : 0;
}

static void keep_first_error(int *first, char text[JOB_TEXT_MAX], int code,
                             const char reason[JOB_TEXT_MAX])
{
    if (*first || !code)
        return;
    *first = code;
    memcpy(text, reason, JOB_TEXT_MAX);
}

static char *find_window(const struct job_worker *worker, uint32_t id, uint64_t at,
                         uint64_t bytes)
{
    for (const struct job_mapping *i = worker->mappings; i; i = i->next)
        if (i->id == id && i->window.data && at + bytes <= i->window.bytes)
            return i->window.data + at;
    return NULL;
}

static void parse_extent(struct job_worker *worker, struct limejob_packet *packet,
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
        uint64_t fence_offset = limejob_get_u64(packet);
        extent->permit.deadline = limejob_get_u64(packet);
        extent->permit.uid = limejob_get_u32(packet);
        if (fence_offset != UINT64_MAX)
            extent->permit.fence = (const limejob_fence *)find_window(
                worker, window, fence_offset, sizeof(uint32_t));
    }
    if (packet->broken || !extent->container ||
        (worker->locations[worker->rank].is_local && !extent->window))
        job_worker_abort(worker, "%s: no such container or window",
                         direction == LEMON_READ ? "read" : "write");
    divide_extent(worker, extent);
}

static void reply_bytes_moved(struct job_worker *worker, const struct limejob_packet *packet,
                              int code, const char *text, uint64_t bytes)
{
    struct limejob_packet reply;
    limejob_reply_init(&reply, packet, code, text);
    if (!code)
        limejob_put_u64(&reply, bytes);
    job_worker_reply(worker, &reply);
}

/* ---- rank 0's messages ---- */

static void reserve_messages(struct job_worker *worker, int more)
{
    int capacity = worker->message_capacity;
    if (worker->message_count + more <= capacity)
        return;
    capacity = (worker->message_count + more) * 2;
    worker->messages = realloc(worker->messages, (size_t)capacity * sizeof *worker->messages);
    worker->pending = realloc(worker->pending, (size_t)capacity * sizeof *worker->pending);
    if (!worker->messages || !worker->pending)
        job_worker_abort(worker, "out of memory"); /* other ranks have begun this command */
    worker->message_capacity = capacity;
}

static void post_messages(struct job_worker *worker, const struct job_extent *extent, int rank,
                          struct job_transfer *transfer)
{
    int64_t from, to;
    bool send = extent->direction == LEMON_WRITE;
    get_share(extent, rank, &from, &to);
    reserve_messages(worker, (int)((to - from) / JOB_MESSAGE_BYTES + 1));
    for (int64_t at = from; at < to; at += JOB_MESSAGE_BYTES) {
        int bytes = (int)smaller(JOB_MESSAGE_BYTES, to - at), i = worker->message_count++;
        worker->pending[i] = (struct job_message){transfer, send ? 0 : bytes};
        transfer->pending_parts++;
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
    if (--transfer->pending_parts > 0)
        return;
    limejob_request_init(&command, transfer->opcode, transfer->tag);
    reply_bytes_moved(worker, &command, transfer->code, transfer->text, transfer->bytes_moved);
    free(transfer);
}

/* A rank that cannot read sends an empty message; its own reply tells the server the reason. */
static void complete_message(struct job_worker *worker, const struct job_message *message,
                             const MPI_Status *status)
{
    int bytes = 0;
    if (message->bytes)
        MPI_Get_count(status, MPI_BYTE, &bytes);
    if (bytes != message->bytes && !message->transfer->code)
        message->transfer->code = EIO;
    finish_if_complete(worker, message->transfer);
}

static bool test_messages(struct job_worker *worker)
{
    bool has_completed = false;
    for (int i = 0; i < worker->message_count;) {
        MPI_Status status;
        int done = 0;
        MPI_Test(&worker->messages[i], &done, &status);
        if (!done) {
            i++;
            continue;
        }
        struct job_message message = worker->pending[i];
        worker->message_count--;
        worker->messages[i] = worker->messages[worker->message_count];
        worker->pending[i] = worker->pending[worker->message_count];
        complete_message(worker, &message, &status);
        has_completed = true;
    }
    return has_completed;
}

/* ---- between commands ---- */

bool job_extent_progress(struct job_worker *worker)
{
    int index, done = 0;
    if (worker->rank == 0)
        return worker->message_count > 0 && test_messages(worker);
    if (!job_extent_busy(worker))
        return false;
    MPI_Testany(JOB_BUFFERS, worker->requests, &index, &done, MPI_STATUS_IGNORE);
    return done;
}

bool job_extent_busy(const struct job_worker *worker)
{
    if (worker->rank == 0)
        return worker->message_count > 0;
    for (int i = 0; i < JOB_BUFFERS; i++)
        if (worker->requests[i] != MPI_REQUEST_NULL)
            return true;
    return false;
}

/* ---- on rank 0's host ---- */

/* Returns the length of the next part to move. While MPI messages are in flight, parts are
 * short and end at block boundaries, so that the caller can call job_extent_progress() in
 * between. Parts of collective calls are those of send_share() and receive_share(). */
static int64_t get_part_length(const struct job_worker *worker, const struct job_extent *extent,
                               int64_t at, int64_t to)
{
    if (extent->container->io == LIMEJOB_IO_COLLECTIVE)
        return worker->has_remote ? JOB_MESSAGE_BYTES : to - at;
    if (worker->message_count == 0)
        return to - at;
    return smaller(to - at, JOB_MESSAGE_BYTES - (extent->offset + at) % LIMEJOB_ALIGN);
}

static int transfer_own_share(struct job_worker *worker, const struct job_extent *extent,
                              job_io_func *io, struct job_transfer *transfer)
{
    int64_t at, to;
    int first_code = 0;
    get_share(extent, worker->rank, &at, &to);
    int64_t end = find_parts_end(extent, at, to);
    while (at < end && (!first_code || extent->container->io == LIMEJOB_IO_COLLECTIVE)) {
        char reason[JOB_TEXT_MAX] = "";
        int64_t part = get_part_length(worker, extent, at, end);
        int64_t bytes = clamp_part(at, part, to);
        int code = io(worker, extent, extent->window + at, at, bytes, reason, sizeof reason);
        keep_first_error(&first_code, transfer->text, code, reason);
        transfer->bytes_moved += first_code ? 0 : (uint64_t)bytes;
        at += part;
        job_extent_progress(worker);
    }
    return first_code ? first_code : transfer->code;
}

static void transfer_locally(struct job_worker *worker, const struct job_extent *extent,
                             const struct limejob_packet *packet, job_io_func *io)
{
    struct job_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer)
        job_worker_abort(worker, "out of memory");
    transfer->opcode = packet->opcode;
    transfer->tag = packet->tag;
    transfer->pending_parts = 1;
    for (int i = 1; i < worker->ranks && worker->rank == 0; i++)
        if (!worker->locations[i].is_local)
            post_messages(worker, extent, i, transfer);
    transfer->code = transfer_own_share(worker, extent, io, transfer);
    finish_if_complete(worker, transfer);
}

/* ---- read ---- */

static int read_share_part(struct job_worker *worker, const struct job_extent *extent, char *to,
                           int64_t from, int64_t bytes, char *text, size_t cap)
{
    char reason[LEMON_RANGE_TEXT_MAX];
    if (job_container_read(extent->container, to, bytes, extent->offset + from, reason))
        return 0;
    snprintf(text, cap, "%.100s: %.300s: %s", worker->host, extent->container->path, reason);
    return EIO;
}

/* Waits until the previous message that uses buffer i is complete. If rank 0 or its host fails,
 * the watchdog ends this process. Returns where in the buffer to put the data at `from`. */
static char *wait_for_buffer(struct job_worker *worker, const struct job_extent *extent,
                             unsigned i, int64_t from)
{
    int done = 0;
    for (int tries = 0; !done; tries++) {
        MPI_Test(&worker->requests[i], &done, MPI_STATUS_IGNORE);
        if (!done)
            job_worker_pause(tries > JOB_SPINS ? JOB_PAUSE_US : 0);
    }
    /* Direct I/O requires equal alignment of memory and file offset. */
    return worker->buffers + (size_t)i * JOB_BUFFER_BYTES +
           (extent->offset + from) % LIMEJOB_ALIGN;
}

/* Reads the rank's share and sends it to rank 0. After an error, the messages are empty. */
static void send_share(struct job_worker *worker, const struct job_extent *extent,
                       const struct limejob_packet *packet)
{
    uint64_t bytes_read = 0;
    int64_t from, to;
    int code = 0;
    char text[JOB_TEXT_MAX] = "", reason[JOB_TEXT_MAX] = "";
    get_share(extent, worker->rank, &from, &to);
    int64_t end = find_parts_end(extent, from, to);
    bool collective = extent->container->io == LIMEJOB_IO_COLLECTIVE;
    for (int64_t at = from; at < end; at += JOB_MESSAGE_BYTES) {
        int64_t bytes = clamp_part(at, JOB_MESSAGE_BYTES, to);
        unsigned i = worker->next_buffer++ % JOB_BUFFERS;
        char *buffer = wait_for_buffer(worker, extent, i, at);
        if (!code || collective)
            keep_first_error(
                &code, text,
                read_share_part(worker, extent, buffer, at, bytes, reason, sizeof reason),
                reason);
        if (bytes == 0)
            continue;
        MPI_Isend(buffer, code ? 0 : (int)bytes, MPI_BYTE, 0, JOB_TAG_READ, worker->comm,
                  &worker->requests[i]);
        bytes_read += code ? 0 : (uint64_t)bytes;
    }
    reply_bytes_moved(worker, packet, code, text, bytes_read);
}

void job_extent_read(struct job_worker *worker, struct limejob_packet *packet)
{
    struct job_extent extent;
    parse_extent(worker, packet, LEMON_READ, &extent);
    if (worker->locations[worker->rank].is_local)
        transfer_locally(worker, &extent, packet, read_share_part);
    else
        send_share(worker, &extent, packet);
}

/* ---- write ---- */

static int write_share_part(struct job_worker *worker, const struct job_extent *extent,
                            char *data, int64_t from, int64_t bytes, char *text, size_t cap)
{
    int64_t at = extent->offset + from;
    int code = job_container_write(extent->container, &extent->permit, data, bytes, &at);
    if (code)
        snprintf(text, cap, "%.100s: %.300s: write at %lld: %s", worker->host,
                 extent->container->path, (long long)at, strerror(code));
    return code;
}

/* ---- on other hosts ---- */

/* Receives the rank's share and writes it. Posts receives into the buffers ahead of the writes.
 * Even after an error, receives the rest, because rank 0 sends it. */
static void receive_share(struct job_worker *worker, const struct job_extent *extent,
                          const struct limejob_packet *packet)
{
    unsigned next_write = worker->next_buffer;
    char text[JOB_TEXT_MAX] = "", reason[JOB_TEXT_MAX] = "";
    int64_t at, posted, to;
    uint64_t written = 0;
    int code = 0;
    get_share(extent, worker->rank, &at, &to);
    int64_t end = find_parts_end(extent, at, to);
    bool collective = extent->container->io == LIMEJOB_IO_COLLECTIVE;
    for (posted = at; at < end; at += JOB_MESSAGE_BYTES) {
        for (; posted < to && worker->next_buffer - next_write < JOB_BUFFERS;
             posted += JOB_MESSAGE_BYTES) {
            unsigned i = worker->next_buffer++ % JOB_BUFFERS;
            MPI_Irecv(wait_for_buffer(worker, extent, i, posted),
                      (int)clamp_part(posted, JOB_MESSAGE_BYTES, to), MPI_BYTE, 0,
                      JOB_TAG_WRITE, worker->comm, &worker->requests[i]);
        }
        int64_t bytes = clamp_part(at, JOB_MESSAGE_BYTES, to);
        char *buffer = worker->buffers;
        if (bytes > 0)
            buffer = wait_for_buffer(worker, extent, next_write++ % JOB_BUFFERS, at);
        if (!code || collective)
            keep_first_error(
                &code, text,
                write_share_part(worker, extent, buffer, at, bytes, reason, sizeof reason),
                reason);
        written += code ? 0 : (uint64_t)bytes;
    }
    reply_bytes_moved(worker, packet, code, text, written);
}

/* ---- commands ---- */

void job_extent_write(struct job_worker *worker, struct limejob_packet *packet)
{
    struct job_extent extent;
    parse_extent(worker, packet, LEMON_WRITE, &extent);
    if (worker->locations[worker->rank].is_local)
        transfer_locally(worker, &extent, packet, write_share_part);
    else
        receive_share(worker, &extent, packet);
}

void job_extent_sync(struct job_worker *worker, struct limejob_packet *packet)
{
    struct limejob_packet reply;
    char reason[MPI_MAX_ERROR_STRING] = "", text[JOB_TEXT_MAX] = "";
    struct job_container *container = job_container_find(worker, limejob_get_u32(packet));
    if (!container)
        job_worker_abort(worker, "sync: no such container"); /* other ranks wait for this one */
    int code = job_container_sync(container, reason, sizeof reason);
    if (code)
        snprintf(text, sizeof text, "%.100s: %.300s: sync: %.200s", worker->host,
                 container->path, reason);
    limejob_reply_init(&reply, packet, code, text);
    job_worker_reply(worker, &reply);
}
