/* file_domains.c - divide a range of the file into one range per aggregator */
#include "file_domains.h"

void lemon_file_domains_init(struct lemon_file_domains *domains, int64_t bytes, int ranks,
                             int64_t file_offset, const struct lemon_plan_hints *hints)
{
    int64_t stripe = hints->stripe;
    int64_t stripes = (file_offset % stripe + bytes + stripe - 1) / stripe;
    int64_t aggregators = hints->aggregators > 0 ? smaller(ranks, hints->aggregators) : ranks;
    *domains = (struct lemon_file_domains){
        .bytes = bytes, .file_offset = file_offset, .stripe = stripe};
    domains->aggregators = (int)smaller(aggregators, stripes > 0 ? stripes : 1);
    domains->bytes_each = (stripes + domains->aggregators - 1) / domains->aggregators * stripe;
    if (domains->bytes_each == 0)
        domains->bytes_each = stripe;
}

/* from_first_stripe: offset of a boundary from the start of the stripe in which the range
 * begins. Returns the boundary's offset in the range, 0 to domains->bytes. */
static int64_t domain_boundary(const struct lemon_file_domains *domains,
                               int64_t from_first_stripe)
{
    int64_t at = from_first_stripe - domains->file_offset % domains->stripe;
    return at < 0 ? 0 : smaller(at, domains->bytes);
}

void lemon_file_domains_range(const struct lemon_file_domains *domains, int aggregator,
                              int64_t *from, int64_t *to)
{
    *from = domain_boundary(domains, aggregator * domains->bytes_each);
    *to = domain_boundary(domains, (aggregator + 1) * domains->bytes_each);
}
