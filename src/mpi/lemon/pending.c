/*
 * pending.c - transfers that go on while the program computes
 *
 * What the file system does is left to MPI's non-blocking contiguous calls. A write that needs
 * movers exchanges the data first, in memory, and then lets the movers write; a read lets the
 * movers read and exchanges when it is finished.
 */
#include "internal.h"

#include <unistd.h>

enum {
    CHUNK = 256 << 20, /* of one request: counts are int */
    RUNS_MAX = 64,     /* more requests than this at once help nobody */
};

static int failure(enum lemon_direction direction)
{
    return direction == LEMON_READ ? LEMON_ERR_READ : LEMON_ERR_WRITE;
}

static int reserve(struct lemon_pending *pending)
{
    if (pending->count < pending->capacity)
        return 0;
    int capacity = pending->capacity * 2 + 16;
    MPI_Request *requests = realloc(pending->requests, (size_t)capacity * sizeof *requests);
    if (requests)
        pending->requests = requests;
    int64_t *wanted = realloc(pending->wanted, (size_t)capacity * sizeof *wanted);
    if (wanted)
        pending->wanted = wanted;
    if (!requests || !wanted)
        return -1;
    pending->capacity = capacity;
    return 0;
}

/* Open MPI's OMPIO never finishes a non-blocking read that the file is too short for. */
static int is_there(struct lemon_internal *in, int64_t n, int64_t offset)
{
    MPI_Offset size = 0;
    if (MPI_File_get_size(*in->fp, &size) == MPI_SUCCESS && offset + n <= size)
        return LEMON_SUCCESS;
    return lemon_say(in, LEMON_ERR_READ, "read at %lld: the file ends at %lld",
                     (long long)offset, (long long)size);
}

/* Posts one contiguous range; this rank alone. */
static int post(struct lemon_internal *in, char *data, int64_t n, int64_t offset)
{
    struct lemon_pending *pending = &in->pending;
    if (n > 0 && pending->direction == LEMON_READ && is_there(in, n, offset) != LEMON_SUCCESS)
        return LEMON_ERR_READ;
    for (int64_t done = 0; done < n;) {
        int count = n - done < CHUNK ? (int)(n - done) : CHUNK;
        if (reserve(pending) != 0)
            return lemon_say(in, failure(pending->direction), "out of memory");
        MPI_Request *request = &pending->requests[pending->count];
        int err = pending->direction == LEMON_READ
                      ? MPI_File_iread_at(*in->fp, offset + done, data + done, count, MPI_BYTE,
                                          request)
                      : MPI_File_iwrite_at(*in->fp, offset + done, data + done, count, MPI_BYTE,
                                           request);
        if (err != MPI_SUCCESS)
            return lemon_say(in, failure(pending->direction), "start at %lld: MPI error %d",
                             (long long)(offset + done), err);
        pending->wanted[pending->count++] = count;
        done += count;
    }
    return LEMON_SUCCESS;
}

static void begin(struct lemon_internal *in, enum lemon_direction direction, char *data)
{
    struct lemon_pending *pending = &in->pending;
    pending->direction = direction;
    pending->count = 0;
    pending->buffer = NULL;
    pending->exchange = pending->broadcast = false;
    pending->data = data;
    pending->code = LEMON_SUCCESS;
}

int lemon_start_bytes(struct lemon_internal *in, enum lemon_direction direction, void *data,
                      int64_t n, int64_t offset)
{
    begin(in, direction, data);
    in->pending.broadcast = direction == LEMON_READ;
    in->pending.bytes = n;
    if (in->rank == 0)
        in->pending.code = post(in, data, n, offset);
    return in->pending.code;
}

/* ---- lattices ---- */

static bool few_runs(const struct lemon_internal *in)
{
    for (int i = 0; i < in->ranks; i++) {
        const struct lemon_box *box = &in->geometry.boxes[i];
        int64_t run = lemon_box_run_bytes(box);
        if (run && lemon_box_bytes(box) / run > RUNS_MAX)
            return false;
    }
    return true;
}

static int post_runs(struct lemon_internal *in, char *data, int64_t base)
{
    const struct lemon_box *box = &in->geometry.boxes[in->rank];
    int64_t run = lemon_box_run_bytes(box), bytes = lemon_box_bytes(box);
    int code = LEMON_SUCCESS;
    for (int64_t i = 0; i * run < bytes && code == LEMON_SUCCESS; i++)
        code = post(in, data + i * run, run, base + lemon_box_run_offset(box, run, i));
    return code;
}

/* All rounds between the ranks' data and the movers' buffers. */
static int exchange_all(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    int64_t first = 0, last = 0;
    int code = LEMON_SUCCESS;
    bool mover = in->rank < pending->plan.movers;
    if (mover)
        lemon_plan_range(&pending->plan, in->rank, &first, &last);
    int64_t rounds = lemon_plan_rounds(&pending->plan);
    for (int64_t round = 0; round < rounds && code == LEMON_SUCCESS; round++) {
        int64_t from = first, to;
        if (mover)
            lemon_plan_window(&pending->plan, in->rank, round, &from, &to);
        char *window = pending->buffer ? pending->buffer + (from - first) : NULL;
        code = lemon_exchange(in, &pending->plan, pending->direction, round, pending->data,
                              window);
    }
    return code;
}

static int start_movers(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    int64_t from = 0, to = 0;
    if (in->rank < pending->plan.movers)
        lemon_plan_range(&pending->plan, in->rank, &from, &to);
    pending->buffer = to > from ? malloc((size_t)(to - from)) : NULL;
    int code = lemon_agree(in, to > from && !pending->buffer ? failure(pending->direction)
                                                             : LEMON_SUCCESS);
    if (code == LEMON_SUCCESS && pending->direction == LEMON_WRITE)
        code = exchange_all(in);
    if (code == LEMON_SUCCESS)
        code = post(in, pending->buffer, to - from, pending->plan.base + from);
    pending->exchange = pending->direction == LEMON_READ;
    return code;
}

int lemon_start_lattice(struct lemon_internal *in, enum lemon_direction direction, char *data,
                        int64_t base)
{
    struct lemon_pending *pending = &in->pending;
    begin(in, direction, data);
    lemon_geometry_plan(in, base, &pending->plan);
    pending->code =
        pending->plan.direct && few_runs(in) ? post_runs(in, data, base) : start_movers(in);
    return pending->code;
}

/* ---- the end ---- */

#ifdef OPEN_MPI
/* MPI_Wait() on a request that has failed crashes Open MPI 4.1, so the request is asked first
 * how much it has moved; asking drives MPI's progress, too. (MPICH's never answer.) */
static int64_t wait_for(MPI_Request *request, int64_t wanted)
{
    MPI_Status status;
    int done = 0, moved = 0;
    for (useconds_t pause = 0; !done; pause = pause < 1000 ? pause + 10 : pause) {
        if (MPI_Request_get_status(*request, &done, &status) != MPI_SUCCESS)
            return 0;
        if (!done)
            usleep(pause);
    }
    MPI_Get_count(&status, MPI_BYTE, &moved);
    if (moved != wanted) {
        MPI_Request_free(request);
        return moved;
    }
    return MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS ? moved : 0;
}
#else
static int64_t wait_for(MPI_Request *request, int64_t wanted)
{
    MPI_Status status;
    int moved = 0;
    (void)wanted;
    if (MPI_Wait(request, &status) != MPI_SUCCESS)
        return 0;
    MPI_Get_count(&status, MPI_BYTE, &moved);
    return moved;
}
#endif

static int wait_for_requests(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    int code = pending->code;
    for (int i = 0; i < pending->count; i++) {
        int64_t moved = wait_for(&pending->requests[i], pending->wanted[i]);
        if (moved != pending->wanted[i])
            code = lemon_say(in, failure(pending->direction), "%lld of %lld bytes moved",
                             (long long)moved, (long long)pending->wanted[i]);
    }
    pending->count = 0;
    return code;
}

void lemon_broadcast(const struct lemon_internal *in, char *data, int64_t n)
{
    for (int64_t done = 0; done < n; done += CHUNK)
        MPI_Bcast(data + done, n - done < CHUNK ? (int)(n - done) : CHUNK, MPI_BYTE, 0,
                  in->comm);
}

int lemon_finish(struct lemon_internal *in)
{
    struct lemon_pending *pending = &in->pending;
    int code = lemon_agree(in, wait_for_requests(in));
    if (code == LEMON_SUCCESS && pending->exchange)
        code = exchange_all(in);
    if (code == LEMON_SUCCESS && pending->broadcast)
        lemon_broadcast(in, pending->data, pending->bytes);
    free(pending->buffer);
    pending->buffer = NULL;
    return code;
}
