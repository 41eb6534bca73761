/* cells_decompose.c - divide a domain of particles into one box per rank */
#include "cells.h"

#include <string.h>

/* Returns the lower edge of cell i of n, as limefile_cells_edge() does. */
static double cell_edge(const LemonDomain *domain, int d, int64_t i, int64_t n)
{
    return domain->origin[d] + domain->length[d] * ((double)i / (double)n);
}

int lemonRegularBox(LemonDomain const *domain, int const *grid, int ranks, int rank,
                    double *lower, double *upper)
{
    int parts[LEMON_CELLS_DIMS] = {0};
    if (!domain || !lower || !upper || ranks < 1 || rank < 0 || rank >= ranks)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonRegularBox: no domain, or invalid rank");
    if (grid)
        memcpy(parts, grid, sizeof parts);
    else
        MPI_Dims_create(ranks, LEMON_CELLS_DIMS, parts);
    int64_t product = 1;
    for (int d = 0; d < LEMON_CELLS_DIMS; d++)
        product = parts[d] < 1 || product > ranks ? 0 : product * parts[d];
    if (product != ranks)
        return lemon_log(NULL, LEMON_ERR_PARAM,
                         "lemonRegularBox: the grid does not have %d ranks", ranks);
    for (int d = LEMON_CELLS_DIMS - 1; d >= 0; d--) {
        lower[d] = cell_edge(domain, d, rank % parts[d], parts[d]);
        upper[d] = cell_edge(domain, d, rank % parts[d] + 1, parts[d]);
        rank /= parts[d];
    }
    return LEMON_SUCCESS;
}

/* A box of cells, for ranks [first, first + ranks). */
struct cell_box {
    int64_t from[LEMON_CELLS_DIMS], to[LEMON_CELLS_DIMS];
    int first, ranks;
};

/* Counts the box's particles in each plane of cells that is perpendicular to dimension d. */
static void count_planes(const LemonCells *cells, const struct cell_box *box, int d,
                         int64_t *planes)
{
    const int64_t *n = cells->domain.cells;
    int64_t at[LEMON_CELLS_DIMS];
    memset(planes, 0, (size_t)(box->to[d] - box->from[d]) * sizeof *planes);
    for (at[0] = box->from[0]; at[0] < box->to[0]; at[0]++)
        for (at[1] = box->from[1]; at[1] < box->to[1]; at[1]++)
            for (at[2] = box->from[2]; at[2] < box->to[2]; at[2]++)
                planes[at[d] - box->from[d]] +=
                    cells->cell[(at[0] * n[1] + at[1]) * n[2] + at[2]].count;
}

/* Returns the longest of the dimensions in which the box has several cells, or -1 if none. */
static int longest_dimension(const LemonCells *cells, const struct cell_box *box)
{
    int best = -1;
    double most = 0;
    for (int d = 0; d < LEMON_CELLS_DIMS; d++) {
        int64_t n = box->to[d] - box->from[d];
        double length = cells->domain.length[d] * (double)n / (double)cells->domain.cells[d];
        if (n > 1 && length > most) {
            most = length;
            best = d;
        }
    }
    return best;
}

/* Returns how many of the n planes, beginning with the first, have about lower_ranks / all of
 * the particles: 1 to n - 1. */
static int64_t choose_cut(const int64_t *planes, int64_t n, int lower_ranks, int all)
{
    double total = 0, before = 0, best = 0;
    int64_t at = 1;
    for (int64_t i = 0; i < n; i++)
        total += (double)planes[i];
    double target = total * lower_ranks / all;
    for (int64_t i = 1; i < n; i++) {
        before += (double)planes[i - 1];
        double distance = before > target ? before - target : target - before;
        if (i == 1 || distance < best) {
            best = distance;
            at = i;
        }
    }
    return at;
}

/* Reduces the box of several ranks to that of `rank`. Returns 0, or -1 if out of memory. */
static int find_rank_box(const LemonCells *cells, struct cell_box *box, int rank)
{
    while (box->ranks > 1) {
        int d = longest_dimension(cells, box), lower_ranks = box->ranks / 2;
        if (d < 0) { /* the first rank gets the single cell, other ranks get an empty box */
            if (rank != box->first) {
                memcpy(box->from, cells->domain.cells, sizeof box->from);
                memcpy(box->to, cells->domain.cells, sizeof box->to);
            }
            box->ranks = 1;
            break;
        }
        int64_t n = box->to[d] - box->from[d];
        int64_t *planes = malloc((size_t)n * sizeof *planes);
        if (!planes)
            return -1;
        count_planes(cells, box, d, planes);
        int64_t middle = box->from[d] + choose_cut(planes, n, lower_ranks, box->ranks);
        free(planes);
        if (rank < box->first + lower_ranks) {
            box->to[d] = middle;
            box->ranks = lower_ranks;
        } else {
            box->from[d] = middle;
            box->first += lower_ranks;
            box->ranks -= lower_ranks;
        }
    }
    return 0;
}

int lemonBalancedBox(LemonCells const *cells, int ranks, int rank, double *lower, double *upper)
{
    if (!cells || !lower || !upper || ranks < 1 || rank < 0 || rank >= ranks)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonBalancedBox: no cells, or invalid rank");
    const LemonDomain *domain = &cells->domain;
    struct cell_box box = {.ranks = ranks};
    memcpy(box.to, domain->cells, sizeof box.to);
    if (find_rank_box(cells, &box, rank) != 0)
        return lemon_log(NULL, LEMON_ERR_PARAM, "lemonBalancedBox: out of memory");
    for (int d = 0; d < LEMON_CELLS_DIMS; d++) {
        lower[d] = cell_edge(domain, d, box.from[d], domain->cells[d]);
        upper[d] = cell_edge(domain, d, box.to[d], domain->cells[d]);
    }
    return LEMON_SUCCESS;
}
