/* runs.c - plan which rank moves which bytes if each rank has arbitrary ranges */
#include "runs.h"

enum {
    RANGE_LEAST = 4 << 20, /* of an aggregator */
    TURN = 8 << 20,
    ROOT_MOST = 1 << 20, /* there are at most 2^40 items */
};

void lemon_runs_plan_make(struct lemon_runs_plan *plan, int64_t bytes, int64_t ranks,
                          int64_t base, const struct lemon_plan_hints *hints)
{
    struct lemon_plan_hints least = *hints;
    int64_t worth = bytes / RANGE_LEAST > 1 ? bytes / RANGE_LEAST : 1;
    int64_t wish = hints->movers > 0 ? hints->movers : ranks;
    least.movers = smaller(smaller(wish, worth), ranks);
    *plan = (struct lemon_runs_plan){.ranks = ranks};
    lemon_share_make(&plan->share, bytes, (int)ranks, base, &least);
    int64_t turn = hints->round > 0 ? hints->round : TURN;
    plan->turn = turn > hints->stripe ? turn - turn % hints->stripe : hints->stripe;
    plan->turns = bytes > 0 ? (plan->share.each + plan->turn - 1) / plan->turn : 0;
}

bool lemon_runs_are_long(const struct lemon_runs_plan *plan, const struct lemon_run *run,
                         int64_t runs, const struct lemon_plan_hints *hints)
{
    if (hints->striped || (hints->movers > 0 && hints->movers < plan->ranks))
        return false;
    for (int64_t i = 0; i < runs; i++)
        if (run[i].bytes < RANGE_LEAST)
            return false;
    return true;
}

int64_t lemon_runs_of_home(int64_t items, int64_t ranks)
{
    int64_t each = (items + ranks - 1) / ranks;
    while (each < ROOT_MOST && each * each < items)
        each++;
    return each;
}

int64_t lemon_runs_rank(const struct lemon_runs_plan *plan, int64_t mover)
{
    return mover * plan->ranks / plan->share.movers;
}

int64_t lemon_runs_mover(const struct lemon_runs_plan *plan, int64_t rank)
{
    int64_t mover = (rank * plan->share.movers + plan->ranks - 1) / plan->ranks;
    return mover < plan->share.movers && lemon_runs_rank(plan, mover) == rank ? mover : -1;
}

int64_t lemon_runs_owner(const struct lemon_runs_plan *plan, int64_t at)
{
    return (at + plan->share.base % plan->share.stripe) / plan->share.each;
}

/* Turns end at multiples of the stripe in the file, so the first one may be shorter. */
void lemon_runs_turn(const struct lemon_runs_plan *plan, int64_t mover, int64_t turn,
                     int64_t *from, int64_t *to)
{
    int64_t begin, end, skew = plan->share.base % plan->share.stripe;
    lemon_share_range(&plan->share, (int)mover, &begin, &end);
    int64_t first = mover * plan->share.each - skew; /* possibly before `begin` */
    *from = first + turn * plan->turn;
    *to = smaller(*from + plan->turn, end);
    if (*from < begin)
        *from = begin;
    if (*from > *to)
        *from = *to;
}

int64_t lemon_runs_count(struct lemon_run *run, int64_t runs)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < runs; i++) {
        run[i].before = bytes;
        bytes += run[i].bytes;
    }
    return bytes;
}

int64_t lemon_runs_find(const struct lemon_run *run, int64_t runs, int64_t at)
{
    int64_t low = 0, high = runs;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (run[middle].offset + run[middle].bytes > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int64_t lemon_runs_before(const struct lemon_run *run, int64_t runs, int64_t at)
{
    int64_t i = lemon_runs_find(run, runs, at);
    if (i == runs)
        return runs ? run[runs - 1].before + run[runs - 1].bytes : 0;
    return run[i].before + (at > run[i].offset ? at - run[i].offset : 0);
}
