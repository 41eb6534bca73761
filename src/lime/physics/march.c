/* march.c - one step after another: layers are loaded, tiles measured, bad links looked into */
#define _GNU_SOURCE
#include "march.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int march_make(struct march *m, const struct limefile_sites *sites, const struct plan *plan,
               double bound)
{
    *m = (struct march){
        .reader = {.sites = sites, .plan = plan, .buffer = malloc(plan->read_bytes)},
        .measure = tile_measure_best(),
        .bound = bound,
    };
    int err = m->reader.buffer ? layer_make(&m->layer[0], plan) : -ENOMEM;
    return err ? err : layer_make(&m->layer[1], plan);
}

void march_release(struct march *m)
{
    free(m->reader.buffer);
    layer_release(&m->layer[0]);
    layer_release(&m->layer[1]);
}

/* ---- bad links ---- */

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

void tally_merge(struct tally *t, const struct tally *other)
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
static bool judge(struct march *m, const double *u, struct limefile_physics_bad *bad)
{
    double unitarity, determinant;
    int odd = limefile_physics_link(u, &unitarity, &determinant);
    bad->wrong = LIMEFILE_PHYSICS_GOOD;
    if (odd >= 0) {
        bad->wrong = isnan(u[odd]) ? LIMEFILE_PHYSICS_NAN : LIMEFILE_PHYSICS_INFINITE;
        bad->real = (unsigned)odd;
        for (int i = odd; i < LIMEFILE_LINK_REALS; i++)
            m->tally.nonfinite += !isfinite(u[i]);
        return true;
    }
    m->tally.unitarity = larger(m->tally.unitarity, unitarity);
    m->tally.determinant = larger(m->tally.determinant, determinant);
    if (unitarity > m->bound) {
        bad->wrong = LIMEFILE_PHYSICS_UNITARITY;
        bad->deviation = unitarity;
    } else if (determinant > m->bound) {
        bad->wrong = LIMEFILE_PHYSICS_DETERMINANT;
        bad->deviation = determinant;
    }
    return bad->wrong != LIMEFILE_PHYSICS_GOOD;
}

/* Where a tile is. */
struct place {
    uint64_t at[4];
};

/* Link by link, where the tile as a whole says that something is wrong. */
static void look_closer(struct march *m, const double *tile, unsigned count,
                        const struct place *place)
{
    const uint64_t *extent = m->reader.plan->extent, *at = place->at;
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
            if (!judge(m, u, &bad))
                continue;
            m->tally.bad_links++;
            m->tally.bad_sites += before++ == 0;
            if (is_before(&bad, &m->tally.first))
                m->tally.first = bad;
        }
    }
}

/* ---- steps ---- */

static void measure_row(struct march *m, const double *tile, const double *const row[3],
                        const struct place *start, uint64_t count, struct cell *sum)
{
    struct place place = *start;
    const double *next[3] = {row[0], row[1], row[2]};
    for (; count; tile += TILE_REALS) {
        unsigned n = count < TILE_SITES ? (unsigned)count : TILE_SITES;
        struct tile_sums sums;
        m->measure(tile, next, n, &sums);
        sum->space += sums.space;
        sum->time += sums.time;
        sum->trace += sums.trace;
        if (!sums.finite || sums.square > m->bound * m->bound) {
            look_closer(m, tile, n, &place);
        } else {
            m->tally.unitarity = larger(m->tally.unitarity, __builtin_sqrt(sums.unitarity));
            m->tally.determinant =
                larger(m->tally.determinant, __builtin_sqrt(sums.determinant));
        }
        for (int i = 0; i < 3; i++)
            next[i] += TILE_REALS;
        place.at[0] += n;
        count -= n;
    }
}

static void measure_step(struct march *m, const struct part *part, const struct layer *here,
                         const struct layer *then, struct cell *sum)
{
    const struct plan *p = m->reader.plan;
    for (uint64_t z = 0; z < part->count[2]; z++)
        for (uint64_t y = 0; y < part->count[1]; y++) {
            const double *row[3] = {
                layer_row(here, p, part, y + 1, z),
                layer_row(here, p, part, y, z + 1),
                layer_row(then, p, part, y, z),
            };
            struct place place = {
                {part->first[0], part->first[1] + y, part->first[2] + z, part->t}};
            struct cell of_row = {0};
            measure_row(m, layer_row(here, p, part, y, z), row, &place, part->count[0],
                        &of_row);
            sum->space += of_row.space;
            sum->time += of_row.time;
            sum->trace += of_row.trace;
        }
}

/* That layer, which is loaded, if it is not there, into another one than `busy`. */
static int need(struct march *m, const struct part *part, uint64_t block, uint64_t t,
                const struct layer *busy, struct layer **out)
{
    for (int i = 0; i < 2; i++)
        if (m->layer[i].full && m->layer[i].block == block && m->layer[i].t == t) {
            *out = &m->layer[i];
            return 0;
        }
    *out = busy == &m->layer[0] ? &m->layer[1] : &m->layer[0];
    return layer_load(*out, &m->reader, part, block, t);
}

int march_step(struct march *m, uint64_t step, struct cell *cell, uint64_t *sites)
{
    const struct plan *p = m->reader.plan;
    uint64_t block = step / p->extent[3];
    struct part part;
    struct layer *here, *then;
    struct cell sum = {0};
    plan_part(p, step, &part);
    int err = need(m, &part, block, part.t, NULL, &here);
    if (!err)
        err = need(m, &part, block, (part.t + 1) % p->extent[3], here, &then);
    if (err)
        return err;
    measure_step(m, &part, here, then, &sum);
    cell->space += sum.space;
    cell->time += sum.time;
    cell->trace += sum.trace;
    *sites = part.count[0] * part.count[1] * part.count[2];
    return 0;
}
