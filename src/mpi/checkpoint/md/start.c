/* start.c - where a run begins */
#include "md.h"
#include "mix.h"

#include <math.h>

enum {
    DRAWS = 12, /* uniform numbers whose sum is nearly normal, with variance 1 */
};

/* Number n of a sequence (splitmix64), in [0, 1): no rank needs what another one has drawn. */
static double uniform(uint64_t seed, uint64_t n)
{
    return mix64_fraction(mix64(seed + (n + 1) * MIX64_STEP));
}

static double normal(uint64_t seed, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < DRAWS; i++)
        sum += uniform(seed, n * DRAWS + i);
    return sum - DRAWS / 2.0;
}

/* Edge of the smallest cube that has as many sites. */
static int64_t edge_for(int64_t particles)
{
    int64_t edge = (int64_t)cbrt((double)particles);
    while (edge * edge * edge < particles)
        edge++;
    return edge;
}

void md_start(struct md_state *s, const struct checkpoint_world *world)
{
    const struct md_parameters *p = &s->parameters;
    uint64_t seed = (uint64_t)p->seed;
    int64_t edge = edge_for(p->particles), sites = edge * edge * edge;
    int64_t from = (int64_t)((md_wide)p->particles * world->rank / world->ranks);
    int64_t to = (int64_t)((md_wide)p->particles * (world->rank + 1) / world->ranks);
    double spacing = p->length / (double)edge, width = sqrt(p->temperature), mean[3];
    struct md_sum sums[3] = {{0}};
    s->own = md_room(s->own, to - from, &s->room, sizeof *s->own);
    for (int64_t i = from; i < to; i++) {
        struct md_particle *q = &s->own[s->count++];
        int64_t site = (int64_t)((md_wide)i * sites / p->particles);
        const int64_t at[3] = {site / edge / edge, site / edge % edge, site % edge};
        q->id = (uint64_t)i + 1;
        for (int d = 0; d < 3; d++) {
            q->x[d] = ((double)at[d] + 0.5) * spacing;
            q->v[d] = width * normal(seed, (uint64_t)i * 3 + (uint64_t)d);
            md_sum_add(&sums[d], q->v[d]);
        }
    }
    md_sum_all(sums, 3, mean);
    for (int64_t i = 0; i < s->count; i++)
        for (int d = 0; d < 3; d++)
            s->own[i].v[d] -= mean[d] / (double)p->particles;
}
