/* march.c - one step after another: layers are loaded, tiles measured, bad links looked into */
#define _GNU_SOURCE
#include "march.h"

#include <errno.h>
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

/* ---- steps ---- */

static void measure_row(struct march *m, const double *tile, const double *const row[3],
                        const uint64_t start[4], uint64_t count, struct physics_sums *sum)
{
    const struct bounds bounds = {m->reader.plan->extent, m->bound};
    uint64_t at[4] = {start[0], start[1], start[2], start[3]};
    const double *next[3] = {row[0], row[1], row[2]};
    for (; count; tile += TILE_REALS) {
        unsigned n = count < TILE_SITES ? (unsigned)count : TILE_SITES;
        struct tile_sums sums;
        m->measure(tile, next, n, &sums);
        sum->space += sums.space;
        sum->time += sums.time;
        sum->trace += sums.trace;
        tally_tile(&m->tally, &bounds, tile, n, at, &sums);
        for (int i = 0; i < 3; i++)
            next[i] += TILE_REALS;
        at[0] += n;
        count -= n;
    }
}

static void measure_step(struct march *m, const struct part *part, const struct layer *here,
                         const struct layer *then, struct physics_sums *sum)
{
    const struct plan *p = m->reader.plan;
    for (uint64_t z = 0; z < part->count[2]; z++)
        for (uint64_t y = 0; y < part->count[1]; y++) {
            const double *row[3] = {
                layer_row(here, p, part, y + 1, z),
                layer_row(here, p, part, y, z + 1),
                layer_row(then, p, part, y, z),
            };
            const uint64_t at[4] = {part->first[0], part->first[1] + y, part->first[2] + z,
                                    part->t};
            struct physics_sums of_row = {0};
            measure_row(m, layer_row(here, p, part, y, z), row, at, part->count[0], &of_row);
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

int march_step(struct march *m, uint64_t step, struct physics_sums *cell, uint64_t *sites)
{
    const struct plan *p = m->reader.plan;
    uint64_t block = step / p->extent[3];
    struct part part;
    struct layer *here, *then;
    struct physics_sums sum = {0};
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
