/* transfer.c - bytes between memory and file, by plan, waiting for them */
#include "internal.h"

#include <string.h>

enum {
    CHUNK = 256 << 20, /* of one MPI-IO call: counts are int */
    TAG = 1,
};

static int failure(enum lemon_direction direction)
{
    return direction == LEMON_READ ? LEMON_ERR_READ : LEMON_ERR_WRITE;
}

int lemon_move_bytes(struct lemon_internal *in, enum lemon_direction direction, void *data,
                     int64_t n, int64_t offset)
{
    for (int64_t done = 0; done < n;) {
        int count = n - done < CHUNK ? (int)(n - done) : CHUNK, moved = 0;
        MPI_Status status;
        int err = direction == LEMON_READ
                      ? MPI_File_read_at(*in->fp, offset + done, (char *)data + done, count,
                                         MPI_BYTE, &status)
                      : MPI_File_write_at(*in->fp, offset + done, (char *)data + done, count,
                                          MPI_BYTE, &status);
        if (err == MPI_SUCCESS)
            MPI_Get_count(&status, MPI_BYTE, &moved);
        if (err != MPI_SUCCESS || moved != count)
            return lemon_say(in, failure(direction),
                             "%s at %lld: %d of %d bytes (MPI error %d)",
                             direction == LEMON_READ ? "read" : "write",
                             (long long)(offset + done), moved, count, err);
        done += count;
    }
    return LEMON_SUCCESS;
}

/* ---- each rank its own runs ---- */

static int move_runs(struct lemon_internal *in, enum lemon_direction direction, char *data,
                     int64_t base)
{
    const struct lemon_box *box = &in->geometry.boxes[in->rank];
    int64_t run = lemon_box_run_bytes(box), bytes = lemon_box_bytes(box);
    int code = LEMON_SUCCESS;
    for (int64_t i = 0; i * run < bytes && code == LEMON_SUCCESS; i++)
        code = lemon_move_bytes(in, direction, data + i * run, run,
                                base + lemon_box_run_offset(box, run, i));
    return code;
}

/* ---- through movers ---- */

/* The part of `rank`'s data in the window: where in its memory, and how much. */
static int64_t part_of(const struct lemon_internal *in, int rank, int64_t from, int64_t to,
                       int64_t *at)
{
    const struct lemon_box *box = &in->geometry.boxes[rank];
    *at = lemon_box_before(box, from);
    return lemon_box_before(box, to) - *at;
}

/* What this rank has for, or gets from, the movers other than itself. */
static int post_own_parts(struct lemon_internal *in, const struct lemon_plan *plan,
                          enum lemon_direction direction, int64_t round, char *data,
                          MPI_Request *requests)
{
    int count = 0;
    for (int mover = 0; mover < plan->movers; mover++) {
        int64_t from, to, at;
        lemon_plan_window(plan, mover, round, &from, &to);
        int64_t n = mover == in->rank ? 0 : part_of(in, in->rank, from, to, &at);
        if (n == 0)
            continue;
        if (direction == LEMON_WRITE)
            MPI_Isend(data + at, (int)n, MPI_BYTE, mover, TAG, in->comm, &requests[count++]);
        else
            MPI_Irecv(data + at, (int)n, MPI_BYTE, mover, TAG, in->comm, &requests[count++]);
    }
    return count;
}

struct parts {
    int64_t from, to; /* this mover's window */
    char *staging;    /* the parts of the other ranks, one after another */
    int64_t *offset;  /* in it, one a rank, and the end */
};

static void lay_out_parts(const struct lemon_internal *in, struct parts *parts)
{
    int64_t at, sum = 0;
    for (int rank = 0; rank < in->ranks; rank++) {
        parts->offset[rank] = sum;
        if (rank != in->rank)
            sum += part_of(in, rank, parts->from, parts->to, &at);
    }
    parts->offset[in->ranks] = sum;
}

/* Between the window and the data of this rank itself: no message. */
static void copy_own(const struct lemon_internal *in, enum lemon_direction direction,
                     const struct parts *parts, char *data, char *window)
{
    const struct lemon_box *box = &in->geometry.boxes[in->rank];
    int64_t at, n = part_of(in, in->rank, parts->from, parts->to, &at);
    if (n && direction == LEMON_WRITE)
        lemon_box_scatter(box, parts->from, parts->to, data + at, window);
    else if (n)
        lemon_box_gather(box, parts->from, parts->to, window, data + at);
}

/* A mover's side of a write: parts come in any order and are put in their places. */
static void collect(struct lemon_internal *in, const struct parts *parts, char *window,
                    MPI_Request *requests)
{
    for (int rank = 0; rank < in->ranks; rank++) {
        int64_t n = parts->offset[rank + 1] - parts->offset[rank];
        requests[rank] = MPI_REQUEST_NULL;
        if (n)
            MPI_Irecv(parts->staging + parts->offset[rank], (int)n, MPI_BYTE, rank, TAG,
                      in->comm, &requests[rank]);
    }
    for (;;) {
        int rank;
        MPI_Waitany(in->ranks, requests, &rank, MPI_STATUS_IGNORE);
        if (rank == MPI_UNDEFINED)
            return;
        lemon_box_scatter(&in->geometry.boxes[rank], parts->from, parts->to,
                          parts->staging + parts->offset[rank], window);
    }
}

/* A mover's side of a read. */
static void hand_out(struct lemon_internal *in, const struct parts *parts, const char *window,
                     MPI_Request *requests)
{
    for (int rank = 0; rank < in->ranks; rank++) {
        int64_t n = parts->offset[rank + 1] - parts->offset[rank];
        char *part = parts->staging + parts->offset[rank];
        requests[rank] = MPI_REQUEST_NULL;
        if (n == 0)
            continue;
        lemon_box_gather(&in->geometry.boxes[rank], parts->from, parts->to, window, part);
        MPI_Isend(part, (int)n, MPI_BYTE, rank, TAG, in->comm, &requests[rank]);
    }
    MPI_Waitall(in->ranks, requests, MPI_STATUSES_IGNORE);
}

int lemon_exchange(struct lemon_internal *in, const struct lemon_plan *plan,
                   enum lemon_direction direction, int64_t round, char *data, char *window)
{
    struct parts parts = {0};
    size_t ranks = (size_t)in->ranks;
    MPI_Request *requests = malloc(2 * ranks * sizeof *requests);
    parts.offset = malloc((ranks + 1) * sizeof *parts.offset);
    if (in->rank < plan->movers)
        lemon_plan_window(plan, in->rank, round, &parts.from, &parts.to);
    if (parts.offset)
        lay_out_parts(in, &parts);
    if (parts.offset && parts.offset[ranks])
        parts.staging = malloc((size_t)parts.offset[ranks]);
    bool bad = !requests || !parts.offset || (parts.offset[ranks] && !parts.staging);
    int code = lemon_agree(in, bad ? failure(direction) : LEMON_SUCCESS);
    if (code == LEMON_SUCCESS) {
        int count = post_own_parts(in, plan, direction, round, data, requests + ranks);
        if (parts.to > parts.from) {
            copy_own(in, direction, &parts, data, window);
            if (direction == LEMON_WRITE)
                collect(in, &parts, window, requests);
            else
                hand_out(in, &parts, window, requests);
        }
        MPI_Waitall(count, requests + ranks, MPI_STATUSES_IGNORE);
    }
    free(parts.staging);
    free(parts.offset);
    free(requests);
    return code;
}

static int move_windows(struct lemon_internal *in, const struct lemon_plan *plan,
                        enum lemon_direction direction, char *data)
{
    bool mover = in->rank < plan->movers;
    char *window = mover ? malloc((size_t)plan->round) : NULL;
    int code = lemon_agree(in, mover && !window ? failure(direction) : LEMON_SUCCESS);
    int64_t rounds = code == LEMON_SUCCESS ? lemon_plan_rounds(plan) : 0;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t from = 0, to = 0;
        if (mover)
            lemon_plan_window(plan, in->rank, round, &from, &to);
        /* After an error the ranks go on exchanging: nobody is left waiting. */
        if (direction == LEMON_READ && to > from && code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, direction, window, to - from, plan->base + from);
        int err = lemon_exchange(in, plan, direction, round, data, window);
        if (err != LEMON_SUCCESS) { /* the same on all ranks */
            code = err;
            break;
        }
        if (direction == LEMON_WRITE && to > from && code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, direction, window, to - from, plan->base + from);
    }
    free(window);
    return code;
}

int lemon_move_lattice(struct lemon_internal *in, enum lemon_direction direction, char *data,
                       int64_t base)
{
    struct lemon_plan plan;
    lemon_geometry_plan(in, base, &plan);
    return plan.direct ? move_runs(in, direction, data, base)
                       : move_windows(in, &plan, direction, data);
}
