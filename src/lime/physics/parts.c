/* parts.c - parts of a configuration, and what comes of all of them */
#include "march.h"

#include <errno.h>
#include <stdlib.h>

double limefile_physics_bound(const struct limefile_sites *sites, double bound)
{
    return tally_bound(bound, sites->precision);
}

/* ---- measured ---- */

int limefile_physics_whole(const struct limefile_sites *sites,
                           struct limefile_physics_part *out)
{
    struct plan plan;
    int err = plan_make(&plan, sites);
    if (!err)
        *out = (struct limefile_physics_part){.blocks = plan.steps / plan.extent[3],
                                              .slices = plan.extent[3]};
    return err;
}

static bool is_inside(uint64_t from, uint64_t count, uint64_t all)
{
    return count <= all && from <= all - count;
}

int limefile_physics_measure_part(const struct limefile_sites *sites,
                                  const struct limefile_physics_part *part, double bound,
                                  struct limefile_physics_sums *sums,
                                  struct limefile_physics_tally *tally)
{
    struct plan plan;
    struct march m;
    uint64_t count;
    int err = plan_make(&plan, sites);
    if (err)
        return err;
    if (!is_inside(part->slice, part->slices, plan.extent[3]) ||
        !is_inside(part->block, part->blocks, plan.steps / plan.extent[3]))
        return -EINVAL;
    err = march_make(&m, sites, &plan, limefile_physics_bound(sites, bound));
    for (uint64_t b = part->block; !err && b < part->block + part->blocks; b++)
        for (uint64_t t = part->slice; !err && t < part->slice + part->slices; t++, sums++) {
            *sums = (struct limefile_physics_sums){0};
            err = march_step(&m, b * plan.extent[3] + t, sums, &count);
        }
    if (!err)
        limefile_physics_merge(tally, &m.tally);
    march_release(&m);
    return err;
}

/* ---- put together ---- */

static void add(struct limefile_physics_sums *to, const struct limefile_physics_sums *more)
{
    to->space += more->space;
    to->time += more->time;
    to->trace += more->trace;
}

/* Into the first one; in halves, so that rounding hardly adds up. */
static void add_cells(struct limefile_physics_sums *cells, uint64_t count)
{
    for (; count > 1; count -= count / 2) {
        uint64_t half = count - count / 2;
        for (uint64_t i = 0; i + half < count; i++)
            add(&cells[i], &cells[i + half]);
    }
}

void cells_conclude(const struct limefile_sites *of, struct limefile_physics_sums *cells,
                    uint64_t count, double bound, const struct limefile_physics_tally *t,
                    struct limefile_physics *out)
{
    add_cells(cells, count);
    tally_tell(t, bound, &cells[0], (double)limefile_sites_count(of), out);
}

int limefile_physics_conclude(const struct limefile_sites *sites, double bound,
                              const struct limefile_physics_sums *sums,
                              const struct limefile_physics_tally *tally,
                              struct limefile_physics *out)
{
    struct plan plan;
    int err = plan_make(&plan, sites);
    if (err)
        return err;
    struct limefile_physics_sums *cells = calloc(plan.cells, sizeof *cells);
    if (!cells)
        return -ENOMEM;
    for (uint64_t step = 0; step < plan.steps; step++)
        add(&cells[step / plan.cell_steps], &sums[step]);
    cells_conclude(sites, cells, plan.cells, limefile_physics_bound(sites, bound), tally, out);
    free(cells);
    return 0;
}
