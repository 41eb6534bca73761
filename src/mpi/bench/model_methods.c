/* model_methods.c - Lemon's plan, an exchange in rows, and two-phase collective buffering */
#include "model.h"
#include "schedule.h"

#include <math.h>
#include <stdlib.h>

enum {
    SAMPLES = 1024, /* ranks that are asked where each answer takes long */
};

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* ---- lime: the library's own plan and schedules ---- */

static void count_messages(const struct lemon_schedule *schedule, int64_t rank,
                           struct model_outcome *outcome)
{
    const struct lemon_part *parts = schedule->parts;
    double sent = 0, out = 0, received = 0, in = 0;
    for (int64_t i = 0; i < schedule->part_count; i++) {
        bool same =
            i > 0 && parts[i].turn == parts[i - 1].turn && parts[i].mover == parts[i - 1].mover;
        sent += !same && parts[i].mover != rank;
        out += parts[i].mover != rank ? (double)parts[i].n : 0;
    }
    model_tally_add(&outcome->sent, sent);
    model_tally_add(&outcome->out, out);
    if (schedule->mover < 0)
        return;
    for (int64_t i = 0; i < schedule->source_count; i++) {
        received += schedule->sources[i].rank != rank;
        in += schedule->sources[i].rank != rank ? (double)schedule->sources[i].n : 0;
    }
    model_tally_add(&outcome->received, received);
    model_tally_add(&outcome->in, in);
}

static void count_pieces(const struct lemon_plan *plan, const struct lemon_schedule *schedule,
                         struct model_servers *servers, struct model_outcome *outcome)
{
    double ranges = 0;
    for (int64_t turn = 0; schedule->mover >= 0 && turn < plan->turns; turn++) {
        struct lemon_piece pieces[LEMON_TURN_PIECES];
        int count = lemon_plan_turn(plan, schedule->mover, turn, pieces);
        for (int i = 0; i < count; i++) {
            model_tally_add(&outcome->extents, (double)(pieces[i].to - pieces[i].from));
            model_servers_write(servers, schedule->mover, pieces[i].from, pieces[i].to);
            outcome->shared +=
                pieces[i].from > 0 && (plan->base + pieces[i].from) % plan->stripe;
        }
        ranges += count;
    }
    if (schedule->mover < 0)
        return;
    model_tally_add(&outcome->per_mover, ranges);
    model_tally_add(&outcome->written, (double)schedule->bytes);
    model_tally_add(&outcome->memory, (plan->turns > 1 ? 3.0 : 2.0) * (double)schedule->window);
}

static bool through_movers(const struct lemon_plan *plan, struct model_servers *servers,
                           struct model_outcome *outcome)
{
    for (int64_t rank = 0; rank < plan->ranks; rank++) {
        struct lemon_schedule schedule;
        struct lemon_plan own;
        const struct lemon_plan_hints hints = {.stripe = plan->stripe, .striped = true};
        double begin = model_now();
        lemon_plan_make(&own, &plan->grid, plan->base, &hints); /* for the clock */
        if (lemon_schedule_make(&schedule, plan, rank) != 0)
            return false;
        double bytes = (double)schedule.part_count * sizeof *schedule.parts +
                       (double)schedule.source_count * sizeof *schedule.sources;
        outcome->plan_seconds = fmax(outcome->plan_seconds, model_now() - begin);
        outcome->plan_bytes = fmax(outcome->plan_bytes, bytes);
        count_messages(&schedule, rank, outcome);
        count_pieces(plan, &schedule, servers, outcome);
        lemon_schedule_free(&schedule);
    }
    return true;
}

/* Each rank's own runs. */
static void directly(const struct lemon_plan *plan, struct model_servers *servers,
                     struct model_outcome *outcome)
{
    for (int64_t rank = 0; rank < plan->ranks; rank++) {
        struct lemon_box box;
        struct lemon_box_walk walk;
        lemon_grid_box(&plan->grid, rank, &box);
        int64_t run = lemon_box_run_bytes(&box), bytes = lemon_box_bytes(&box);
        model_tally_add(&outcome->sent, 0);
        model_tally_add(&outcome->out, 0);
        if (bytes == 0)
            continue;
        lemon_box_walk_set(&walk, &box, run, 0);
        for (int64_t done = 0; done < bytes; done += run, lemon_box_walk_next(&walk)) {
            model_tally_add(&outcome->extents, (double)run);
            model_servers_write(servers, rank, walk.offset, walk.offset + run);
            outcome->shared += walk.offset > 0 && (plan->base + walk.offset) % plan->stripe;
        }
        model_tally_add(&outcome->per_mover, (double)(bytes / run));
        model_tally_add(&outcome->written, (double)bytes);
        model_tally_add(&outcome->memory, 0);
    }
}

bool model_lime(const struct model *model, struct model_outcome *outcome)
{
    struct lemon_plan plan;
    struct model_servers servers;
    const struct lemon_plan_hints hints = {
        .stripe = model->stripe,
        .striped = true,
        .movers = model->movers,
        .round = model->round,
    };
    *outcome = (struct model_outcome){.method = "lime", .overlaps = true};
    if (!model_servers_open(&servers, model))
        return false;
    lemon_plan_make(&plan, &model->grid, model->base, &hints);
    bool good = true;
    outcome->direct = plan.direct;
    outcome->turns = plan.direct ? 0 : plan.turns;
    if (plan.direct)
        directly(&plan, &servers, outcome);
    else
        good = through_movers(&plan, &servers, outcome);
    outcome->movers = outcome->per_mover.count;
    outcome->plan_bytes += sizeof plan;
    model_servers_close(&servers, outcome);
    model_estimate(model, outcome);
    return good;
}

/* ---- alltoallv: rows, one exchange, whole extents ---- */

struct rows {
    int cut;
    int64_t width; /* ranks of a row */
    int64_t inner; /* bytes of a step in dimension `cut` */
};

static void find_rows(const struct model *model, struct rows *rows)
{
    const struct lemon_grid *grid = &model->grid;
    *rows = (struct rows){.cut = grid->dims - 1, .width = 1, .inner = grid->site_bytes};
    for (; rows->cut > 0; rows->cut--) {
        if (grid->extent[rows->cut] / grid->parts[rows->cut] * rows->inner >= model->target)
            return;
        rows->width *= grid->parts[rows->cut];
        rows->inner *= grid->extent[rows->cut];
    }
}

/* One rank of a row: `j` of its width. */
static void row_member(const struct rows *rows, const struct lemon_box *box, int64_t j,
                       int64_t extents, struct model_servers *servers,
                       struct model_outcome *outcome)
{
    int64_t length = box->sites[rows->cut] * rows->inner;
    int64_t first = j * extents / rows->width, end = (j + 1) * extents / rows->width;
    int64_t owners = extents < rows->width ? extents : rows->width;
    double part = (double)lemon_box_bytes(box);
    double own = extents ? part * (double)(end - first) / (double)extents : 0;
    model_tally_add(&outcome->sent, (double)(owners - (end > first)));
    model_tally_add(&outcome->out, part - own);
    if (end <= first || length == 0)
        return;
    for (int64_t e = first; e < end; e++) {
        int64_t at = 0, left = e, stride = box->extent[rows->cut] * rows->inner;
        for (int i = rows->cut - 1; i >= 0; i--) {
            at += (box->start[i] + left % box->sites[i]) * stride;
            left /= box->sites[i];
            stride *= box->extent[i];
        }
        at += box->start[rows->cut] * rows->inner;
        model_tally_add(&outcome->extents, (double)length);
        model_servers_write(servers, outcome->movers, at, at + length);
        outcome->shared += at > 0 && (servers->model->base + at) % servers->model->stripe;
    }
    outcome->movers++;
    double written = (double)(length * (end - first));
    model_tally_add(&outcome->received, (double)(rows->width - 1));
    model_tally_add(&outcome->in, written - own);
    model_tally_add(&outcome->per_mover, (double)(end - first));
    model_tally_add(&outcome->written, written);
    model_tally_add(&outcome->memory, 2 * written);
}

bool model_alltoallv(const struct model *model, struct model_outcome *outcome)
{
    struct model_servers servers;
    struct rows rows;
    int64_t ranks = lemon_grid_ranks(&model->grid);
    *outcome = (struct model_outcome){.method = "alltoallv", .turns = 1};
    if (!model_servers_open(&servers, model))
        return false;
    find_rows(model, &rows);
    for (int64_t rank = 0; rank < ranks; rank++) {
        struct lemon_box box;
        int64_t j = 0, extents = 1;
        lemon_grid_box(&model->grid, rank, &box);
        for (int i = 0; i < box.dims; i++) {
            if (i < rows.cut)
                extents *= box.sites[i];
            else if (i > rows.cut)
                j = j * model->grid.parts[i] +
                    rank / model->grid.step[i] % model->grid.parts[i];
        }
        row_member(&rows, &box, j, extents, &servers, outcome);
    }
    outcome->plan_bytes = 4.0 * sizeof(int) * (double)rows.width; /* counts and places */
    model_servers_close(&servers, outcome);
    model_estimate(model, outcome);
    return true;
}

/* ---- collective: the file in one range for each aggregator, buffer after buffer ---- */

/* The windows that have something of the box: the box is asked run by run. */
static double windows_of(const struct lemon_box *box, int64_t buffer)
{
    struct lemon_box_walk walk;
    int64_t run = lemon_box_run_bytes(box), bytes = lemon_box_bytes(box), last = -1;
    double count = 0;
    if (bytes == 0)
        return 0;
    lemon_box_walk_set(&walk, box, run, 0);
    for (int64_t done = 0; done < bytes; done += run, lemon_box_walk_next(&walk)) {
        int64_t first = walk.offset / buffer, end = (walk.offset + run - 1) / buffer;
        count += (double)(end - first + (first != last));
        last = end;
    }
    return count;
}

static double holders_of(const struct lemon_grid *grid, int64_t from, int64_t to)
{
    struct lemon_grid_walk walk;
    double count = 0;
    for (lemon_grid_walk_set(&walk, grid, from, to); !walk.ended; lemon_grid_walk_next(&walk)) {
        struct lemon_box box;
        lemon_grid_box(grid, walk.rank, &box);
        count += lemon_box_before(&box, to) > lemon_box_before(&box, from);
    }
    return count;
}

static void aggregate(const struct model *model, int64_t aggregator, int64_t each,
                      struct model_servers *servers, struct model_outcome *outcome)
{
    int64_t bytes = lemon_grid_bytes(&model->grid), from = aggregator * each;
    int64_t to = from + each < bytes ? from + each : bytes;
    int64_t step = quotient_up(model->aggregators, SAMPLES);
    double received = 0, ranges = 0;
    for (int64_t at = from; at < to; at += model->buffer, ranges++) {
        int64_t end = at + model->buffer < to ? at + model->buffer : to;
        if (aggregator % step == 0 && at == from) /* its windows are alike */
            received = holders_of(&model->grid, at, end);
        model_tally_add(&outcome->extents, (double)(end - at));
        model_servers_write(servers, aggregator, at, end);
    }
    if (to <= from)
        return;
    outcome->movers++;
    outcome->turns = ranges > (double)outcome->turns ? (int64_t)ranges : outcome->turns;
    if (aggregator % step == 0)
        model_tally_add(&outcome->received, received * ranges);
    model_tally_add(&outcome->in, (double)(to - from));
    model_tally_add(&outcome->per_mover, ranges);
    model_tally_add(&outcome->written, (double)(to - from));
    model_tally_add(&outcome->memory, (double)model->buffer);
}

bool model_collective(const struct model *model, struct model_outcome *outcome)
{
    struct model_servers servers;
    int64_t ranks = lemon_grid_ranks(&model->grid), bytes = lemon_grid_bytes(&model->grid);
    int64_t each = quotient_up(quotient_up(bytes, model->aggregators), model->stripe);
    *outcome = (struct model_outcome){.method = "collective"};
    if (!model_servers_open(&servers, model))
        return false;
    each *= model->stripe; /* as ROMIO does where it knows the stripe */
    for (int64_t i = 0; i < model->aggregators; i++)
        aggregate(model, i, each, &servers, outcome);
    for (int64_t rank = 0; rank < ranks; rank += quotient_up(ranks, SAMPLES)) {
        struct lemon_box box;
        lemon_grid_box(&model->grid, rank, &box);
        model_tally_add(&outcome->sent, windows_of(&box, model->buffer));
        model_tally_add(&outcome->out, (double)lemon_box_bytes(&box));
    }
    /* Before each of its rounds, every rank learns from every other how much it gets. */
    outcome->plan_bytes = 4.0 * sizeof(int64_t) * (double)ranks;
    model_servers_close(&servers, outcome);
    model_estimate(model, outcome);
    return true;
}
