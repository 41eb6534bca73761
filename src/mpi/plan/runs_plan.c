/* runs_plan.c - plan I/O of arbitrary ranges by aggregators */
#include "runs_plan.h"

enum {
    RANGE_MIN = 4 << 20,   /* lower limit of the bytes per aggregator, or of a long run */
    ROUND_BYTES = 8 << 20, /* default */
    ROOT_MAX = 1 << 20,    /* square root of the largest number of items, 2^40 */
};

void lemon_runs_plan_init(struct lemon_runs_plan *plan, int64_t bytes, int64_t ranks,
                          int64_t base, const struct lemon_plan_hints *hints)
{
    struct lemon_plan_hints limited = *hints;
    int64_t useful = bytes / RANGE_MIN > 1 ? bytes / RANGE_MIN : 1;
    int64_t requested = hints->aggregators > 0 ? hints->aggregators : ranks;
    limited.aggregators = smaller(smaller(requested, useful), ranks);
    *plan = (struct lemon_runs_plan){.ranks = ranks};
    lemon_file_domains_init(&plan->domains, bytes, (int)ranks, base, &limited);
    int64_t stripe = hints->stripe;
    int64_t round = hints->round_bytes > 0 ? hints->round_bytes : ROUND_BYTES;
    round = round > stripe ? round - round % stripe : stripe;
    plan->round_bytes = round;
    plan->rounds = bytes > 0 ? (plan->domains.bytes_each + round - 1) / round : 0;
}

bool lemon_runs_can_write_directly(const struct lemon_runs_plan *plan,
                                   const struct lemon_run *run, int64_t runs,
                                   const struct lemon_plan_hints *hints)
{
    if (hints->striped || (hints->aggregators > 0 && hints->aggregators < plan->ranks))
        return false;
    for (int64_t i = 0; i < runs; i++)
        if (run[i].bytes < RANGE_MIN)
            return false;
    return true;
}

int64_t lemon_runs_items_per_home(int64_t items, int64_t ranks)
{
    int64_t per_home = (items + ranks - 1) / ranks;
    while (per_home < ROOT_MAX && per_home * per_home < items)
        per_home++;
    return per_home;
}

int64_t lemon_runs_aggregator_rank(const struct lemon_runs_plan *plan, int64_t aggregator)
{
    return aggregator * plan->ranks / plan->domains.aggregators;
}

int64_t lemon_runs_aggregator(const struct lemon_runs_plan *plan, int64_t rank)
{
    int64_t all = plan->domains.aggregators, i = (rank * all + plan->ranks - 1) / plan->ranks;
    return i < all && lemon_runs_aggregator_rank(plan, i) == rank ? i : -1;
}

int64_t lemon_runs_find_aggregator(const struct lemon_runs_plan *plan, int64_t at)
{
    return (at + plan->domains.file_offset % plan->domains.stripe) / plan->domains.bytes_each;
}

/* Rounds end at multiples of the stripe in the file, so the first round may be shorter. */
void lemon_runs_round(const struct lemon_runs_plan *plan, int64_t aggregator, int64_t round,
                      int64_t *from, int64_t *to)
{
    int64_t begin, end, skew = plan->domains.file_offset % plan->domains.stripe;
    lemon_file_domains_range(&plan->domains, (int)aggregator, &begin, &end);
    int64_t first = aggregator * plan->domains.bytes_each - skew; /* possibly before `begin` */
    *from = first + round * plan->round_bytes;
    *to = smaller(*from + plan->round_bytes, end);
    if (*from < begin)
        *from = begin;
    if (*from > *to)
        *from = *to;
}

int64_t lemon_runs_set_before(struct lemon_run *run, int64_t runs)
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

int64_t lemon_runs_bytes_before(const struct lemon_run *run, int64_t runs, int64_t at)
{
    int64_t i = lemon_runs_find(run, runs, at);
    if (i == runs)
        return runs ? run[runs - 1].before + run[runs - 1].bytes : 0;
    return run[i].before + (at > run[i].offset ? at - run[i].offset : 0);
}
