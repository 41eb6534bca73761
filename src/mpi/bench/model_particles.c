/* model_particles.c - a checkpoint of particles: Lemon's plan, each rank by itself, one rank */
#include "model.h"
#include "runs.h"

#include <math.h>
#include <stdlib.h>

enum {
    ENTRY = 24,          /* bytes of a cell in the index */
    AGREEMENTS = 30,     /* collective calls of lemonWriteCells() that combine a few words */
    WORDS_TO_HOMES = 6,  /* messages between a rank and a home of its cells' entries */
    WORDS_TO_MOVERS = 2, /* ... and a mover, before the bytes */
};

/* Of messages, one after another, when all ranks combine something. */
static int64_t depth(int64_t ranks)
{
    int64_t rounds = 0;
    while (INT64_C(1) << rounds < ranks)
        rounds++;
    return 2 * rounds;
}

/* ---- lime ---- */

/* What a mover gets. */
struct got {
    double messages, bytes;
};

struct lime {
    const struct model *model;
    struct model_outcome *outcome;
    struct lemon_runs_plan plan;  /* of the particles */
    struct lemon_runs_plan index; /* of the entries, which homes have in the order of cells */
    struct got *movers;
    double *words; /* of each rank, to and from others */
};

/* What a rank has of a mover's turns. */
static void send_to(const struct lemon_runs_plan *plan, const struct lemon_run *run,
                    int64_t mover, struct got *got)
{
    for (int64_t turn = 0; turn < plan->turns; turn++) {
        int64_t from, to;
        lemon_runs_turn(plan, mover, turn, &from, &to);
        int64_t n = lemon_runs_before(run, 1, to) - lemon_runs_before(run, 1, from);
        got->messages += n > 0;
        got->bytes += (double)n;
    }
}

/* The rank's range of the file, or of the index, mover by mover. */
static struct got send_parts(struct lime *l, const struct lemon_runs_plan *plan, int64_t rank,
                             struct lemon_run *run, struct got *movers)
{
    struct got sent = {0};
    int64_t end = run->offset + run->bytes;
    lemon_runs_count(run, 1);
    for (int64_t at = run->offset; at < end;) {
        int64_t mover = lemon_runs_owner(plan, at), moving = lemon_runs_rank(plan, mover);
        struct got got = {0};
        int64_t from;
        lemon_share_range(&plan->share, (int)mover, &from, &at);
        if (moving == rank)
            continue;
        double words = WORDS_TO_MOVERS;
        send_to(plan, run, mover, &got);
        sent.messages += got.messages;
        sent.bytes += got.bytes;
        if (movers) {
            movers[mover].messages += got.messages;
            movers[mover].bytes += got.bytes;
        } else {
            words += got.messages;
        }
        l->words[rank] += words;
        l->words[moving] += words;
    }
    return sent;
}

/* The entries of the rank's cells go to the homes of these. */
static void tell_homes(struct lime *l, int64_t rank)
{
    const struct model_cells *c = l->model->gas;
    int64_t each = lemon_runs_of_home(c->all, l->model->ranks), last = -1;
    for (int64_t i = c->first[rank]; i < c->first[rank + 1]; i++) {
        int64_t home = c->own[i] / each;
        if (home != last && home != rank) {
            l->words[rank] += WORDS_TO_HOMES;
            l->words[home] += WORDS_TO_HOMES;
        }
        last = home;
    }
}

/* The entries that a rank puts together, in the index. */
static struct lemon_run home_of(const struct model_cells *c, int64_t rank, int64_t ranks)
{
    int64_t each = lemon_runs_of_home(c->all, ranks), first = rank * each;
    first = first < c->all ? first : c->all;
    int64_t n = c->all - first < each ? c->all - first : each;
    return (struct lemon_run){first * ENTRY, n * ENTRY, 0};
}

static void ask_ranks(struct lime *l)
{
    const struct model_cells *c = l->model->gas;
    const struct lemon_plan_hints hints = {.stripe = l->plan.share.stripe, .striped = true};
    int64_t ranks = l->model->ranks, offset = 0;
    for (int64_t rank = 0; rank < ranks; rank++) {
        struct lemon_run run = {offset, c->held[rank] * c->particle_bytes, 0};
        struct lemon_run entries = home_of(c, rank, ranks);
        struct lemon_runs_plan own;
        double begin = model_now();
        lemon_runs_plan_make(&own, l->model->bytes, ranks, l->model->base, &hints);
        tell_homes(l, rank);
        struct got sent = send_parts(l, &l->plan, rank, &run, l->movers);
        send_parts(l, &l->index, rank, &entries, NULL);
        model_tally_add(&l->outcome->sent, sent.messages);
        model_tally_add(&l->outcome->out, sent.bytes);
        l->outcome->plan_seconds = fmax(l->outcome->plan_seconds, model_now() - begin);
        /* Its runs, its cells' entries, and those of which it is the home. */
        double known =
            (double)(c->first[rank + 1] - c->first[rank]) + (double)entries.bytes / ENTRY;
        l->outcome->plan_bytes =
            fmax(l->outcome->plan_bytes, known * (ENTRY + 40.0) + sizeof run);
        offset += run.bytes;
    }
}

static void ask_movers(struct lime *l, struct model_servers *servers)
{
    struct model_outcome *o = l->outcome;
    int64_t windows = l->plan.turns > 1 ? 2 : 1;
    for (int64_t mover = 0; mover < l->plan.share.movers; mover++) {
        double turns = 0, bytes = 0;
        for (int64_t turn = 0; turn < l->plan.turns; turn++) {
            int64_t from, to;
            lemon_runs_turn(&l->plan, mover, turn, &from, &to);
            if (from == to)
                continue;
            turns++;
            bytes += (double)(to - from);
            model_tally_add(&o->extents, (double)(to - from));
            model_servers_write(servers, mover, from, to);
            o->shared += from > 0 && (l->plan.share.base + from) % l->plan.share.stripe;
        }
        if (turns == 0)
            continue;
        o->movers++;
        model_tally_add(&o->received, l->movers[mover].messages);
        model_tally_add(&o->in, l->movers[mover].bytes);
        model_tally_add(&o->per_mover, turns);
        model_tally_add(&o->written, bytes);
        int64_t held = l->model->gas->held[lemon_runs_rank(&l->plan, mover)];
        model_tally_add(&o->memory, (double)(windows * l->plan.turn + held * 8));
        o->plan_bytes = fmax(o->plan_bytes, l->movers[mover].messages * 56);
    }
}

bool model_cells_lime(const struct model *model, struct model_outcome *outcome)
{
    const struct lemon_plan_hints hints = {.stripe = model->stripe,
                                           .striped = true,
                                           .movers = model->movers,
                                           .round = model->round};
    struct lime l = {.model = model, .outcome = outcome};
    struct model_servers servers;
    *outcome = (struct model_outcome){.method = "lime", .overlaps = true};
    if (!model_servers_open(&servers, model))
        return false;
    lemon_runs_plan_make(&l.plan, model->bytes, model->ranks, model->base, &hints);
    lemon_runs_plan_make(&l.index, model->gas->all * ENTRY, model->ranks, 0, &hints);
    l.movers = calloc((size_t)l.plan.share.movers, sizeof *l.movers);
    l.words = calloc((size_t)model->ranks, sizeof *l.words);
    bool good = l.movers && l.words;
    if (good) {
        ask_ranks(&l);
        ask_movers(&l, &servers);
        for (int64_t rank = 0; rank < model->ranks; rank++)
            model_tally_add(&outcome->small, l.words[rank]);
    }
    outcome->turns = l.plan.turns;
    /* Rank 0 joins the checksums of all homes. */
    outcome->plan_bytes = fmax(outcome->plan_bytes, 16.0 * (double)model->ranks);
    outcome->rounds = AGREEMENTS * depth(model->ranks);
    free(l.movers);
    free(l.words);
    model_servers_close(&servers, outcome);
    model_estimate(model, outcome);
    return good;
}

/* ---- independent: the thesis' MPI-IO ---- */

/* Cells in the file are in the order of their numbers, and each rank writes each of its own. */
bool model_cells_independent(const struct model *model, struct model_outcome *outcome)
{
    const struct model_cells *c = model->gas;
    struct model_servers servers;
    int64_t *offset = malloc((size_t)(c->all + 1) * sizeof *offset);
    *outcome = (struct model_outcome){.method = "independent"};
    if (!offset)
        return false;
    if (!model_servers_open(&servers, model)) {
        free(offset);
        return false;
    }
    double begin = model_now();
    offset[0] = 0;
    for (int64_t i = 0; i < c->all; i++)
        offset[i + 1] = offset[i] + c->count[i] * c->particle_bytes;
    outcome->plan_seconds = model_now() - begin; /* what each rank does */
    outcome->plan_bytes = 2.0 * sizeof *offset * (double)c->all;
    for (int64_t rank = 0; rank < model->ranks; rank++) {
        int64_t first = c->first[rank], end = c->first[rank + 1];
        model_tally_add(&outcome->sent, (double)depth(model->ranks));
        model_tally_add(&outcome->out, 2.0 * sizeof *offset * (double)c->all);
        for (int64_t i = first; i < end; i++) {
            int64_t from = offset[c->own[i]], to = offset[c->own[i] + 1];
            model_tally_add(&outcome->extents, (double)(to - from));
            model_servers_write(&servers, rank, from, to);
            outcome->shared += from > 0 && (model->base + from) % model->stripe &&
                               c->owner[c->own[i] - 1] != rank;
        }
        if (first == end)
            continue;
        outcome->movers++;
        model_tally_add(&outcome->per_mover, (double)(end - first));
        model_tally_add(&outcome->written, (double)(c->held[rank] * c->particle_bytes));
        model_tally_add(&outcome->memory, (double)(c->held[rank] * 8));
    }
    free(offset);
    model_servers_close(&servers, outcome);
    model_estimate(model, outcome);
    return true;
}

/* ---- gather: all by one rank ---- */

bool model_cells_gather(const struct model *model, struct model_outcome *outcome)
{
    const struct model_cells *c = model->gas;
    struct model_servers servers;
    double messages = 0, bytes = 0;
    *outcome = (struct model_outcome){.method = "gather", .movers = 1};
    if (!model_servers_open(&servers, model))
        return false;
    for (int64_t rank = 0; rank < model->ranks; rank++) {
        double own = rank ? (double)(c->held[rank] * c->particle_bytes) : 0;
        double chunks = own > 0 ? (double)(1 + (int64_t)own / model->buffer) : 0;
        model_tally_add(&outcome->sent, chunks);
        model_tally_add(&outcome->out, own);
        messages += chunks;
        bytes += own;
    }
    model_tally_add(&outcome->received, messages);
    model_tally_add(&outcome->in, bytes);
    outcome->turns = 1;
    double extents = 0;
    for (int64_t from = 0; from < model->bytes; from += model->buffer, extents++) {
        int64_t to = from + model->buffer < model->bytes ? from + model->buffer : model->bytes;
        model_tally_add(&outcome->extents, (double)(to - from));
        model_servers_write(&servers, 0, from, to);
    }
    model_tally_add(&outcome->per_mover, extents);
    model_tally_add(&outcome->written, (double)model->bytes);
    model_tally_add(&outcome->memory, (double)model->buffer);
    model_servers_close(&servers, outcome);
    model_estimate(model, outcome);
    return true;
}
