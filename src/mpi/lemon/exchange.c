/*
 * exchange.c - a lattice between the ranks that hold it and the ranks that move it
 *
 * A mover has a window: a contiguous range of the file. What a rank holds of it is one range of
 * the rank's memory (box.h), so the rank sends or receives it in place; the mover keeps the
 * parts of the others one after another in its staging buffer.
 */
#include "internal.h"

enum {
    TAG = 1,
};

int lemon_exchange_open(const struct lemon_internal *in, struct lemon_exchange *exchange,
                        const struct lemon_plan *plan, enum lemon_direction direction,
                        char *data, bool good)
{
    size_t ranks = (size_t)in->ranks;
    bool mover = in->rank < plan->movers;
    *exchange = (struct lemon_exchange){.plan = plan, .direction = direction, .data = data};
    exchange->requests = malloc(2 * ranks * sizeof *exchange->requests);
    exchange->offset = malloc((ranks + 1) * sizeof *exchange->offset);
    exchange->staging = mover && ranks > 1 ? malloc((size_t)plan->round) : NULL;
    if (!exchange->requests || !exchange->offset || (mover && ranks > 1 && !exchange->staging))
        good = false;
    int code = lemon_agree(in, good ? LEMON_SUCCESS
                                    : lemon_say(in, lemon_failure(direction), "out of memory"));
    if (code != LEMON_SUCCESS)
        lemon_exchange_close(exchange);
    return code;
}

void lemon_exchange_close(struct lemon_exchange *exchange)
{
    free(exchange->requests);
    free(exchange->offset);
    free(exchange->staging);
}

/* The part of `rank`'s data in the window: where in its memory, and how much. */
static int64_t part_of(const struct lemon_internal *in, int rank, int64_t from, int64_t to,
                       int64_t *at)
{
    const struct lemon_box *box = &in->geometry.boxes[rank];
    *at = lemon_box_before(box, from);
    return lemon_box_before(box, to) - *at;
}

/* What this rank has for, or gets from, the movers other than itself. */
static int post_own_parts(const struct lemon_internal *in, struct lemon_exchange *exchange,
                          int64_t round, MPI_Request *requests)
{
    int count = 0;
    for (int mover = 0; mover < exchange->plan->movers; mover++) {
        int64_t from, to, at;
        lemon_plan_window(exchange->plan, mover, round, &from, &to);
        int64_t n = mover == in->rank ? 0 : part_of(in, in->rank, from, to, &at);
        if (n == 0)
            continue;
        if (exchange->direction == LEMON_WRITE)
            MPI_Isend(exchange->data + at, (int)n, MPI_BYTE, mover, TAG, in->comm,
                      &requests[count++]);
        else
            MPI_Irecv(exchange->data + at, (int)n, MPI_BYTE, mover, TAG, in->comm,
                      &requests[count++]);
    }
    return count;
}

static void lay_out_parts(const struct lemon_internal *in, struct lemon_exchange *exchange)
{
    int64_t at, sum = 0;
    for (int rank = 0; rank < in->ranks; rank++) {
        exchange->offset[rank] = sum;
        if (rank != in->rank)
            sum += part_of(in, rank, exchange->from, exchange->to, &at);
    }
    exchange->offset[in->ranks] = sum;
}

/* Between the window and the data of this rank itself: no message. */
static void copy_own(const struct lemon_internal *in, const struct lemon_exchange *exchange,
                     char *window)
{
    const struct lemon_box *box = &in->geometry.boxes[in->rank];
    int64_t at, n = part_of(in, in->rank, exchange->from, exchange->to, &at);
    if (n && exchange->direction == LEMON_WRITE)
        lemon_box_scatter(box, exchange->from, exchange->to, exchange->data + at, window);
    else if (n)
        lemon_box_gather(box, exchange->from, exchange->to, window, exchange->data + at);
}

/* A mover's side of a write: parts come in any order and are put in their places. */
static void collect(const struct lemon_internal *in, struct lemon_exchange *exchange,
                    char *window)
{
    MPI_Request *requests = exchange->requests;
    for (int rank = 0; rank < in->ranks; rank++) {
        int64_t n = exchange->offset[rank + 1] - exchange->offset[rank];
        requests[rank] = MPI_REQUEST_NULL;
        if (n)
            MPI_Irecv(exchange->staging + exchange->offset[rank], (int)n, MPI_BYTE, rank, TAG,
                      in->comm, &requests[rank]);
    }
    copy_own(in, exchange, window);
    for (;;) {
        int rank;
        MPI_Waitany(in->ranks, requests, &rank, MPI_STATUS_IGNORE);
        if (rank == MPI_UNDEFINED)
            return;
        lemon_box_scatter(&in->geometry.boxes[rank], exchange->from, exchange->to,
                          exchange->staging + exchange->offset[rank], window);
    }
}

/* A mover's side of a read. */
static void hand_out(const struct lemon_internal *in, struct lemon_exchange *exchange,
                     char *window)
{
    MPI_Request *requests = exchange->requests;
    for (int rank = 0; rank < in->ranks; rank++) {
        int64_t n = exchange->offset[rank + 1] - exchange->offset[rank];
        char *part = exchange->staging + exchange->offset[rank];
        requests[rank] = MPI_REQUEST_NULL;
        if (n == 0)
            continue;
        lemon_box_gather(&in->geometry.boxes[rank], exchange->from, exchange->to, window, part);
        MPI_Isend(part, (int)n, MPI_BYTE, rank, TAG, in->comm, &requests[rank]);
    }
    copy_own(in, exchange, window);
    MPI_Waitall(in->ranks, requests, MPI_STATUSES_IGNORE);
}

/* The sites that lie wholly in one of the round's windows. */
static void sum_parts(struct lemon_internal *in, const struct lemon_exchange *exchange,
                      int64_t round)
{
    for (int mover = 0; mover < exchange->plan->movers && in->sum.active; mover++) {
        int64_t from, to, at, n;
        lemon_plan_window(exchange->plan, mover, round, &from, &to);
        n = part_of(in, in->rank, from, to, &at);
        lemon_sum_between(in, exchange->data, at, at + n);
    }
}

/* The windows in the order of the file: what begins in a site has cut it in two. */
void lemon_exchange_sum_rest(struct lemon_internal *in, const struct lemon_exchange *exchange)
{
    const struct lemon_plan *plan = exchange->plan;
    const struct lemon_box *box = &in->geometry.boxes[in->rank];
    int64_t site = box->site_bytes, rounds = lemon_plan_rounds(plan), last = -1;
    for (int mover = 0; mover < plan->movers && in->sum.active && site; mover++)
        for (int64_t round = 0; round < rounds; round++) {
            int64_t from, to;
            lemon_plan_window(plan, mover, round, &from, &to);
            int64_t at = lemon_box_before(box, from), cut = at / site;
            if (at % site == 0 || cut == last)
                continue;
            lemon_sum_between(in, exchange->data, cut * site, (cut + 1) * site);
            last = cut;
        }
}

void lemon_exchange_round(struct lemon_internal *in, struct lemon_exchange *exchange,
                          int64_t round, char *window)
{
    MPI_Request *own = exchange->requests + in->ranks;
    int count = post_own_parts(in, exchange, round, own);
    if (exchange->direction == LEMON_WRITE) /* while parts are on their way */
        sum_parts(in, exchange, round);
    lemon_plan_window(exchange->plan, in->rank, round, &exchange->from, &exchange->to);
    if (exchange->to > exchange->from) {
        lay_out_parts(in, exchange);
        if (exchange->direction == LEMON_WRITE)
            collect(in, exchange, window);
        else
            hand_out(in, exchange, window);
    }
    MPI_Waitall(count, own, MPI_STATUSES_IGNORE);
    if (exchange->direction == LEMON_READ) /* while the next window is read */
        sum_parts(in, exchange, round);
}
