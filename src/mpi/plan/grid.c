/* grid.c - divide a lattice among ranks */
#include "grid.h"

void lemon_grid_init(struct lemon_grid *grid, int dims, int64_t site_bytes, const int *lattice,
                     const int *parts, const int *mapping)
{
    int64_t step[LEMON_BOX_DIMS] = {0}, next = 1;
    *grid = (struct lemon_grid){.dims = dims, .site_bytes = site_bytes};
    for (int d = dims - 1; d >= 0; d--) {
        step[d] = next;
        next *= parts[d];
    }
    for (int i = 0; i < dims; i++) {
        int d = mapping ? mapping[i] : i;
        grid->extent[i] = lattice[d];
        grid->parts[i] = parts[d];
        grid->step[i] = step[d];
    }
}

int64_t lemon_grid_ranks(const struct lemon_grid *grid)
{
    int64_t ranks = 1;
    for (int i = 0; i < grid->dims; i++)
        ranks *= grid->parts[i];
    return ranks;
}

int64_t lemon_grid_bytes(const struct lemon_grid *grid)
{
    int64_t bytes = grid->site_bytes;
    for (int i = 0; i < grid->dims; i++)
        if (__builtin_mul_overflow(bytes, grid->extent[i], &bytes))
            return -1;
    return bytes;
}

void lemon_grid_get_box(const struct lemon_grid *grid, int64_t rank, struct lemon_box *box)
{
    box->dims = grid->dims;
    box->site_bytes = grid->site_bytes;
    for (int i = 0; i < grid->dims; i++) {
        int64_t part = rank / grid->step[i] % grid->parts[i];
        box->extent[i] = grid->extent[i];
        lemon_box_split(grid->extent[i], (int)grid->parts[i], (int)part, &box->start[i],
                        &box->sites[i]);
    }
}

int64_t lemon_grid_find_part(const struct lemon_grid *grid, int d, int64_t coordinate)
{
    int64_t each = grid->extent[d] / grid->parts[d], more = grid->extent[d] % grid->parts[d];
    int64_t larger = more * (each + 1); /* sites in all parts that have each + 1 sites */
    return coordinate < larger ? coordinate / (each + 1) : more + (coordinate - larger) / each;
}

/* ---- ranks that hold bytes of a range ---- */

static void site_coordinates(const struct lemon_grid *grid, int64_t site, int64_t *at)
{
    for (int i = grid->dims - 1; i >= 0; i--) {
        at[i] = site % grid->extent[i];
        site /= grid->extent[i];
    }
}

/* Let d be the slowest dimension in which the first and the last site of the range differ. In
 * the dimensions slower than d, all sites of the range have the same coordinates. In d, their
 * coordinates are between those of the two sites. In faster dimensions, any are possible. */
void lemon_grid_walk_init(struct lemon_grid_walk *walk, const struct lemon_grid *grid,
                          int64_t from, int64_t to)
{
    int64_t first[LEMON_BOX_DIMS] = {0}, last[LEMON_BOX_DIMS] = {0};
    bool differ = false;
    *walk = (struct lemon_grid_walk){.dims = grid->dims, .ended = from >= to};
    if (walk->ended)
        return;
    site_coordinates(grid, from / grid->site_bytes, first);
    site_coordinates(grid, (to - 1) / grid->site_bytes, last);
    for (int i = 0; i < grid->dims; i++) {
        walk->step[i] = grid->step[i];
        walk->low[i] = differ ? 0 : lemon_grid_find_part(grid, i, first[i]);
        walk->high[i] = differ ? grid->parts[i] - 1 : lemon_grid_find_part(grid, i, last[i]);
        walk->at[i] = walk->low[i];
        walk->rank += walk->at[i] * walk->step[i];
        differ = differ || first[i] != last[i];
    }
}

void lemon_grid_walk_next(struct lemon_grid_walk *walk)
{
    for (int i = walk->dims - 1; i >= 0; i--) {
        if (walk->at[i] < walk->high[i]) {
            walk->at[i]++;
            walk->rank += walk->step[i];
            return;
        }
        walk->rank -= (walk->at[i] - walk->low[i]) * walk->step[i];
        walk->at[i] = walk->low[i];
    }
    walk->ended = true;
}

/* Returns the fastest dimension that is divided among ranks, or -1 if none is. */
static int fastest_divided(const struct lemon_grid *grid)
{
    for (int i = grid->dims - 1; i >= 0; i--)
        if (grid->parts[i] > 1 && grid->extent[i] > 1)
            return i;
    return -1;
}

static int64_t largest_part(const struct lemon_grid *grid, int d)
{
    return grid->extent[d] / grid->parts[d] + (grid->extent[d] % grid->parts[d] > 0);
}

int64_t lemon_grid_max_runs(const struct lemon_grid *grid)
{
    int64_t runs = 1;
    for (int i = 0; i < fastest_divided(grid); i++)
        runs *= largest_part(grid, i);
    return runs;
}

int64_t lemon_grid_shortest_run(const struct lemon_grid *grid)
{
    int divided = fastest_divided(grid);
    if (lemon_grid_max_runs(grid) <= 1)
        return 0;
    int64_t each = grid->extent[divided] / grid->parts[divided];
    int64_t run = grid->site_bytes * (each ? each : 1);
    for (int i = divided + 1; i < grid->dims; i++)
        run *= grid->extent[i];
    return run;
}
