/* transfer.c - bytes between memory and file, by plan, waiting for them */
#include "internal.h"

enum {
    READ_SUM_CHUNK = 8 << 20, /* read, then summed while it is in the cache */
};

int lemon_move_bytes(struct lemon_internal *in, enum lemon_direction direction, void *data,
                     int64_t n, int64_t offset)
{
    char text[128];
    struct lemon_range_fault fault;
    if (lemon_range_move(&in->file, direction, data, n, offset, &fault))
        return LEMON_SUCCESS;
    lemon_range_explain(&fault, text, sizeof text);
    return lemon_say(in, lemon_failure(direction), "%s", text);
}

/* ---- each rank its own runs ---- */

/* n bytes from byte `at` of the part on, with the checksum, if one is wanted. */
static int read_run(struct lemon_internal *in, char *data, int64_t at, int64_t n,
                    int64_t offset)
{
    int64_t piece = in->sum.active ? READ_SUM_CHUNK : n;
    int code = LEMON_SUCCESS;
    for (int64_t done = 0; done < n && code == LEMON_SUCCESS; done += piece) {
        int64_t bytes = n - done < piece ? n - done : piece;
        code = lemon_move_bytes(in, LEMON_READ, data + at + done, bytes, offset + done);
        if (code == LEMON_SUCCESS)
            lemon_sum_reach(in, data, at + done + bytes);
    }
    return code;
}

static int move_runs(struct lemon_internal *in, enum lemon_direction direction, char *data,
                     int64_t base)
{
    const struct lemon_box *box = &in->geometry.boxes[in->rank];
    int64_t run = lemon_box_run_bytes(box), bytes = lemon_box_bytes(box);
    struct lemon_sum_beside beside;
    int code = LEMON_SUCCESS;
    if (direction == LEMON_WRITE)
        lemon_sum_start(&beside, in, data);
    for (int64_t i = 0; i * run < bytes && code == LEMON_SUCCESS; i++) {
        int64_t offset = base + lemon_box_run_offset(box, run, i);
        code = direction == LEMON_READ
                   ? read_run(in, data, i * run, run, offset)
                   : lemon_move_bytes(in, LEMON_WRITE, data + i * run, run, offset);
    }
    if (direction == LEMON_WRITE)
        lemon_sum_join(&beside);
    return code;
}

/* ---- through movers ---- */

/* After an error the ranks go on exchanging: nobody is left waiting. */
static int write_windows(struct lemon_internal *in, const struct lemon_plan *plan,
                         struct lemon_exchange *exchange, char *window)
{
    int64_t rounds = lemon_plan_rounds(plan);
    int code = LEMON_SUCCESS;
    for (int64_t round = 0; round < rounds; round++) {
        int64_t from, to;
        lemon_plan_window(plan, in->rank, round, &from, &to);
        lemon_exchange_round(in, exchange, round, window);
        if (to > from && code == LEMON_SUCCESS)
            code = lemon_move_bytes(in, LEMON_WRITE, window, to - from, plan->base + from);
    }
    return code;
}

/* While one window is handed out, the next one is read. */
static int read_windows(struct lemon_internal *in, const struct lemon_plan *plan,
                        struct lemon_exchange *exchange, char *windows)
{
    int64_t rounds = lemon_plan_rounds(plan);
    int code = LEMON_SUCCESS;
    lemon_post_begin(in, LEMON_READ);
    for (int64_t round = 0; round <= rounds; round++) {
        int64_t from, to;
        code = lemon_post_wait(in);
        lemon_plan_window(plan, in->rank, round, &from, &to);
        if (round < rounds && code == LEMON_SUCCESS)
            code =
                lemon_post(in, windows + round % 2 * plan->round, to - from, plan->base + from);
        if (round > 0)
            lemon_exchange_round(in, exchange, round - 1,
                                 windows + (round - 1) % 2 * plan->round);
    }
    return code;
}

static int move_windows(struct lemon_internal *in, const struct lemon_plan *plan,
                        enum lemon_direction direction, char *data)
{
    size_t bytes = (size_t)plan->round * (direction == LEMON_READ ? 2 : 1);
    char *windows = in->rank < plan->movers ? malloc(bytes) : NULL;
    struct lemon_exchange exchange;
    int code = lemon_exchange_open(in, &exchange, plan, direction, data,
                                   in->rank >= plan->movers || windows);
    if (code == LEMON_SUCCESS) {
        code = direction == LEMON_READ ? read_windows(in, plan, &exchange, windows)
                                       : write_windows(in, plan, &exchange, windows);
        lemon_exchange_sum_rest(in, &exchange);
        lemon_exchange_close(&exchange);
    }
    free(windows);
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
