/* plan.c - who moves which range of the file */
#include "plan.h"

/* Measured: docs/performance.md. */
enum {
    DIRECT_MIN = 256 * 1024, /* runs of at least this go straight to the file */
    ROUND = 8 * 1024 * 1024, /* a mover's buffer */
    ROUND_MAX = 1 << 30,     /* a message's count is an int */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int64_t round_of(const struct lemon_plan_hints *hints)
{
    int64_t stripe = hints->stripe, round = smaller(hints->round, ROUND_MAX);
    if (round == 0)
        return round_up(ROUND, stripe);
    return round < stripe ? stripe : round / stripe * stripe;
}

static bool runs_are_long(const struct lemon_box *boxes, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        int64_t run = lemon_box_run_bytes(&boxes[i]);
        if (run && run < DIRECT_MIN && run < lemon_box_bytes(&boxes[i]))
            return false; /* several short runs; a single one is fine whatever its length */
    }
    return true;
}

void lemon_plan_share(struct lemon_plan *plan, int64_t bytes, int ranks, int64_t base,
                      const struct lemon_plan_hints *hints)
{
    int64_t stripe = hints->stripe;
    *plan = (struct lemon_plan){
        .ranks = ranks,
        .bytes = bytes,
        .base = base,
        .stripe = stripe,
        .round = round_of(hints),
    };
    int64_t stripes = (base % stripe + bytes + stripe - 1) / stripe;
    int64_t movers = hints->movers > 0 ? smaller(ranks, hints->movers) : ranks;
    plan->movers = (int)smaller(movers, stripes > 0 ? stripes : 1);
    plan->share = (stripes + plan->movers - 1) / plan->movers * stripe;
    if (plan->share == 0)
        plan->share = stripe;
}

void lemon_plan_make(struct lemon_plan *plan, const struct lemon_box *boxes, int ranks,
                     int64_t base, const struct lemon_plan_hints *hints)
{
    lemon_plan_share(plan, lemon_box_lattice_bytes(&boxes[0]), ranks, base, hints);
    plan->direct = runs_are_long(boxes, ranks);
}

/* A boundary between movers: a multiple of the stripe in the file, inside of the lattice. */
static int64_t boundary(const struct lemon_plan *plan, int64_t from_first_stripe)
{
    int64_t at = from_first_stripe - plan->base % plan->stripe;
    return at < 0 ? 0 : smaller(at, plan->bytes);
}

void lemon_plan_range(const struct lemon_plan *plan, int mover, int64_t *from, int64_t *to)
{
    *from = boundary(plan, mover * plan->share);
    *to = boundary(plan, (mover + 1) * plan->share);
}

void lemon_plan_window(const struct lemon_plan *plan, int mover, int64_t round, int64_t *from,
                       int64_t *to)
{
    int64_t begin = mover * plan->share + smaller(round * plan->round, plan->share);
    int64_t end = mover * plan->share + smaller((round + 1) * plan->round, plan->share);
    *from = boundary(plan, begin);
    *to = boundary(plan, end);
}

int64_t lemon_plan_rounds(const struct lemon_plan *plan)
{
    return (plan->share + plan->round - 1) / plan->round;
}
