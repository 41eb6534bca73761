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
    const struct lemon_box *box = &in->geometry.box;
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

struct mover {
    const struct lemon_plan *plan;
    struct lemon_schedule schedule;
    char *windows;  /* two if there are turns after the first */
    int64_t window; /* bytes of one */
};

static void set_turn(const struct mover *mover, struct lemon_turn *own, int64_t turn)
{
    lemon_turn_set(own, mover->plan, &mover->schedule, turn,
                   mover->windows + turn % 2 * mover->window);
}

/* While one turn is written, by MPI or by the disk, the next one is collected. After an error
 * the ranks go on exchanging: nobody is left waiting. */
static int write_turns(struct lemon_internal *in, const struct mover *mover,
                       struct lemon_exchange *exchange)
{
    lemon_post_begin(in, LEMON_WRITE);
    in->pending.waits = in->file.start_fd >= 0;
    for (int64_t turn = 0; turn < mover->plan->turns; turn++) {
        struct lemon_turn own;
        set_turn(mover, &own, turn);
        lemon_exchange_turn(in, exchange, turn, &own);
        if (lemon_post_wait(in) == LEMON_SUCCESS)
            lemon_post_turn(in, &own, mover->plan->base);
    }
    return lemon_post_wait(in);
}

/* While one turn is handed out, the next one is read. */
static int read_turns(struct lemon_internal *in, const struct mover *mover,
                      struct lemon_exchange *exchange)
{
    struct lemon_turn own[2];
    lemon_post_begin(in, LEMON_READ);
    for (int64_t turn = 0; turn <= mover->plan->turns; turn++) {
        int code = lemon_post_wait(in);
        set_turn(mover, &own[turn % 2], turn);
        if (code == LEMON_SUCCESS && turn < mover->plan->turns)
            lemon_post_turn(in, &own[turn % 2], mover->plan->base);
        if (turn > 0)
            lemon_exchange_turn(in, exchange, turn - 1, &own[(turn - 1) % 2]);
    }
    return in->pending.code;
}

static int move_through_movers(struct lemon_internal *in, const struct lemon_plan *plan,
                               enum lemon_direction direction, char *data)
{
    struct mover mover = {.plan = plan};
    struct lemon_exchange exchange;
    bool good = lemon_schedule_make(&mover.schedule, plan, in->rank) == 0;
    mover.window = (mover.schedule.window / LIMEFILE_DIRECT_ALIGN + 2) * LIMEFILE_DIRECT_ALIGN;
    if (good)
        mover.windows = lemon_window_new((plan->turns > 1 ? 2 : 1) * mover.window);
    int code = lemon_exchange_open(in, &exchange, plan, &mover.schedule, direction, data,
                                   good && mover.windows);
    if (code == LEMON_SUCCESS) {
        code = direction == LEMON_READ ? read_turns(in, &mover, &exchange)
                                       : write_turns(in, &mover, &exchange);
        lemon_exchange_sum_rest(in, &exchange);
        lemon_exchange_close(&exchange);
    }
    free(mover.windows);
    lemon_schedule_free(&mover.schedule);
    return code;
}

int lemon_move_lattice(struct lemon_internal *in, enum lemon_direction direction, char *data,
                       int64_t base)
{
    struct lemon_plan plan;
    lemon_geometry_plan(in, base, &plan);
    return plan.direct ? move_runs(in, direction, data, base)
                       : move_through_movers(in, &plan, direction, data);
}
