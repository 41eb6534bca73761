/* share.c - divide bytes without structure among ranks */
#include "share.h"

void lemon_share_make(struct lemon_share *share, int64_t bytes, int ranks, int64_t base,
                      const struct lemon_plan_hints *hints)
{
    int64_t stripe = hints->stripe;
    int64_t stripes = (base % stripe + bytes + stripe - 1) / stripe;
    int64_t movers = hints->movers > 0 ? smaller(ranks, hints->movers) : ranks;
    *share = (struct lemon_share){.bytes = bytes, .base = base, .stripe = stripe};
    share->movers = (int)smaller(movers, stripes > 0 ? stripes : 1);
    share->each = (stripes + share->movers - 1) / share->movers * stripe;
    if (share->each == 0)
        share->each = stripe;
}

/* Returns a boundary between aggregators: a multiple of the stripe in the file, or an end. */
static int64_t boundary(const struct lemon_share *share, int64_t from_first_stripe)
{
    int64_t at = from_first_stripe - share->base % share->stripe;
    return at < 0 ? 0 : smaller(at, share->bytes);
}

void lemon_share_range(const struct lemon_share *share, int mover, int64_t *from, int64_t *to)
{
    *from = boundary(share, mover * share->each);
    *to = boundary(share, (mover + 1) * share->each);
}
