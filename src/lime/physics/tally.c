/* tally.c - what does not depend on the order in which tiles are measured */
#include "tally.h"

#include <math.h>

double tally_bound(double given, unsigned precision)
{
    return given > 0         ? given
           : precision == 32 ? LIMEFILE_PHYSICS_BOUND_SINGLE
                             : LIMEFILE_PHYSICS_BOUND_DOUBLE;
}

static bool is_before(const struct limefile_physics_bad *x,
                      const struct limefile_physics_bad *y)
{
    if (y->wrong == LIMEFILE_PHYSICS_GOOD || x->wrong == LIMEFILE_PHYSICS_GOOD)
        return x->wrong != LIMEFILE_PHYSICS_GOOD;
    return x->site != y->site ? x->site < y->site : x->direction < y->direction;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

void tally_merge(struct physics_tally *t, const struct physics_tally *other)
{
    t->unitarity = larger(t->unitarity, other->unitarity);
    t->determinant = larger(t->determinant, other->determinant);
    t->nonfinite += other->nonfinite;
    t->bad_links += other->bad_links;
    t->bad_sites += other->bad_sites;
    if (is_before(&other->first, &t->first))
        t->first = other->first;
}

/* Whether the link is bad, and how. */
static bool judge(struct physics_tally *t, double bound, const double *u,
                  struct limefile_physics_bad *bad)
{
    double unitarity, determinant;
    int odd = limefile_physics_link(u, &unitarity, &determinant);
    bad->wrong = LIMEFILE_PHYSICS_GOOD;
    if (odd >= 0) {
        bad->wrong = isnan(u[odd]) ? LIMEFILE_PHYSICS_NAN : LIMEFILE_PHYSICS_INFINITE;
        bad->real = (unsigned)odd;
        for (int i = odd; i < LIMEFILE_LINK_REALS; i++)
            t->nonfinite += !isfinite(u[i]);
        return true;
    }
    t->unitarity = larger(t->unitarity, unitarity);
    t->determinant = larger(t->determinant, determinant);
    if (unitarity > bound) {
        bad->wrong = LIMEFILE_PHYSICS_UNITARITY;
        bad->deviation = unitarity;
    } else if (determinant > bound) {
        bad->wrong = LIMEFILE_PHYSICS_DETERMINANT;
        bad->deviation = determinant;
    }
    return bad->wrong != LIMEFILE_PHYSICS_GOOD;
}

/* Link by link, where the tile as a whole says that something is wrong. */
static void look_closer(struct physics_tally *t, const struct bounds *b, const double *tile,
                        unsigned count, const uint64_t at[4])
{
    const uint64_t *extent = b->extent;
    uint64_t first = ((at[3] * extent[2] + at[2]) * extent[1] + at[1]) * extent[0] + at[0];
    for (unsigned i = 0; i < count; i++) {
        unsigned before = 0;
        for (unsigned mu = 0; mu < 4; mu++) {
            double u[LIMEFILE_LINK_REALS];
            struct limefile_physics_bad bad = {
                .site = first + i,
                .at = {at[0] + i, at[1], at[2], at[3]},
                .direction = mu,
            };
            for (unsigned c = 0; c < LIMEFILE_LINK_REALS; c++)
                u[c] = tile[(size_t)(mu * LIMEFILE_LINK_REALS + c) * TILE_PITCH + i];
            if (!judge(t, b->bound, u, &bad))
                continue;
            t->bad_links++;
            t->bad_sites += before++ == 0;
            if (is_before(&bad, &t->first))
                t->first = bad;
        }
    }
}

void tally_tile(struct physics_tally *t, const struct bounds *b, const double *tile,
                unsigned count, const uint64_t at[4], const struct tile_sums *sums)
{
    if (!sums->finite || sums->square > b->bound * b->bound) {
        look_closer(t, b, tile, count, at);
        return;
    }
    t->unitarity = larger(t->unitarity, __builtin_sqrt(sums->unitarity));
    t->determinant = larger(t->determinant, __builtin_sqrt(sums->determinant));
}

void tally_tell(const struct physics_tally *t, double bound, const struct physics_sums *sums,
                double sites, struct limefile_physics *out)
{
    *out = (struct limefile_physics){
        .unitarity = t->unitarity,
        .determinant = t->determinant,
        .bound = bound,
        .nonfinite = t->nonfinite,
        .bad_links = t->bad_links,
        .bad_sites = t->bad_sites,
        .first = t->first,
        .space = sums->space / (9 * sites), /* 3 planes, 3 colours */
        .time = sums->time / (9 * sites),
        .trace = sums->trace / (12 * sites),
    };
    out->plaquette = (out->space + out->time) / 2;
    if (t->nonfinite || isnan(out->plaquette) || isnan(out->trace)) /* or sums overflowed */
        out->plaquette = out->space = out->time = out->trace = NAN;
}
