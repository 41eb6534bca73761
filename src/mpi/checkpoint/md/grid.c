/* grid.c - linked cells, who holds them, and who needs them */
#include "md.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LEAST_CELLS = 3, /* in a dimension: else a cell is its neighbour's neighbour */
    CELLS_MAX = 100000,
    SPARSE_CELLS = 64,      /* in a dimension: from there on no more than */
    CELLS_PER_PARTICLE = 8, /* in all: memory grows with them */
};

/* ---- one dimension ---- */

/* Block p of n cells for `blocks` ranks begins here. */
static int64_t block_begin(int64_t n, int blocks, int p)
{
    return n * p / blocks;
}

static int block_of(int64_t n, int blocks, int64_t cell)
{
    return (int)(((cell + 1) * blocks - 1) / n);
}

static int64_t wrap(int64_t n, int64_t cell)
{
    return cell < 0 ? cell + n : cell >= n ? cell - n : cell;
}

/* Whether block p sees a cell: it is its own or next to it. */
static bool sees(int64_t n, int blocks, int p, int64_t cell)
{
    for (int64_t o = -1; o <= 1; o++)
        if (block_of(n, blocks, wrap(n, cell + o)) == p)
            return true;
    return false;
}

static void set_dimension(struct md_grid *g, int d)
{
    int64_t from = g->lower[d] - 1, count = g->upper[d] - g->lower[d] + 2;
    int64_t none = 0;
    count = count < g->n ? count : g->n;
    g->seen[d] = count;
    g->place[d] = md_room(NULL, g->n, &none, sizeof *g->place[d]);
    none = 0;
    g->coordinate[d] = md_room(NULL, count, &none, sizeof *g->coordinate[d]);
    for (int64_t i = 0; i < g->n; i++)
        g->place[d][i] = -1;
    for (int64_t i = 0; i < count; i++) {
        g->coordinate[d][i] = wrap(g->n, from + i);
        g->place[d][g->coordinate[d][i]] = i;
    }
}

/* ---- peers ---- */

static int rank_at(const struct md_grid *g, const int at[3])
{
    return (at[0] * g->grid[1] + at[1]) * g->grid[2] + at[2];
}

/* Own cells that the rank at `at` sees. */
static void set_peer(const struct md_grid *g, const int at[3], struct md_peer *peer)
{
    int64_t room = 0, x[3];
    *peer = (struct md_peer){.rank = rank_at(g, at)};
    for (x[0] = g->lower[0]; x[0] < g->upper[0]; x[0]++)
        for (x[1] = g->lower[1]; sees(g->n, g->grid[0], at[0], x[0]) && x[1] < g->upper[1];
             x[1]++)
            for (x[2] = g->lower[2]; sees(g->n, g->grid[1], at[1], x[1]) && x[2] < g->upper[2];
                 x[2]++) {
                if (!sees(g->n, g->grid[2], at[2], x[2]))
                    continue;
                peer->cell = md_room(peer->cell, peer->cells + 1, &room, sizeof *peer->cell);
                peer->cell[peer->cells++] =
                    (g->place[0][x[0]] * g->seen[1] + g->place[1][x[1]]) * g->seen[2] +
                    g->place[2][x[2]];
            }
}

/* Whether this rank sees a cell of block p in that dimension. */
static bool is_near(const struct md_grid *g, int d, int p)
{
    for (int64_t i = 0; i < g->seen[d]; i++)
        if (block_of(g->n, g->grid[d], g->coordinate[d][i]) == p)
            return true;
    return false;
}

static void set_peers(struct md_grid *g)
{
    int at[3];
    int64_t room = 0;
    for (at[0] = 0; at[0] < g->grid[0]; at[0]++)
        for (at[1] = 0; is_near(g, 0, at[0]) && at[1] < g->grid[1]; at[1]++)
            for (at[2] = 0; is_near(g, 1, at[1]) && at[2] < g->grid[2]; at[2]++) {
                if (!is_near(g, 2, at[2]) || rank_at(g, at) == g->rank)
                    continue;
                g->peer = md_room(g->peer, g->peers + 1, &room, sizeof *g->peer);
                set_peer(g, at, &g->peer[g->peers++]);
            }
}

/* ---- the grid ---- */

/* Of cells whose edges are at least the cut-off, as many as are of use. */
static int64_t cells_for(const struct md_parameters *p)
{
    double cells = floor(p->length / p->cut_off * (1 - 1e-12));
    int64_t n = cells < CELLS_MAX ? (int64_t)cells : CELLS_MAX;
    while (n > SPARSE_CELLS && n * n * n / CELLS_PER_PARTICLE > p->particles)
        n--;
    return n;
}

bool md_grid_set(struct md_grid *g, const struct checkpoint_world *world,
                 const struct md_parameters *p, char reason[CHECKPOINT_ERROR_BYTES])
{
    *g = (struct md_grid){.length = p->length, .rank = world->rank, .ranks = world->ranks};
    g->n = cells_for(p);
    g->scale = (double)g->n / g->length;
    MPI_Dims_create(g->ranks, 3, g->grid);
    if (g->n < LEAST_CELLS) {
        snprintf(reason, CHECKPOINT_ERROR_BYTES,
                 "the box is too small: its edge of %g holds the cut-off %g less than 3 times",
                 p->length, p->cut_off);
        return false;
    }
    if (g->grid[0] > g->n) {
        snprintf(
            reason, CHECKPOINT_ERROR_BYTES,
            "%d ranks are too many: a grid of %d x %d x %d for %lld cells in each dimension",
            g->ranks, g->grid[0], g->grid[1], g->grid[2], (long long)g->n);
        return false;
    }
    g->at[2] = g->rank % g->grid[2];
    g->at[1] = g->rank / g->grid[2] % g->grid[1];
    g->at[0] = g->rank / g->grid[2] / g->grid[1];
    g->places = 1;
    for (int d = 0; d < 3; d++) {
        g->lower[d] = block_begin(g->n, g->grid[d], g->at[d]);
        g->upper[d] = block_begin(g->n, g->grid[d], g->at[d] + 1);
        set_dimension(g, d);
        g->places *= g->seen[d];
    }
    set_peers(g);
    return true;
}

void md_grid_free(struct md_grid *g)
{
    for (int d = 0; d < 3; d++) {
        free(g->place[d]);
        free(g->coordinate[d]);
    }
    for (int i = 0; i < g->peers; i++)
        free(g->peer[i].cell);
    free(g->peer);
    *g = (struct md_grid){0};
}

static int64_t coordinate_of(const struct md_grid *g, double x)
{
    int64_t cell = (int64_t)(x * g->scale);
    return cell < g->n ? cell : g->n - 1;
}

int64_t md_grid_place(const struct md_grid *g, const double x[3])
{
    int64_t place = 0;
    for (int d = 0; d < 3; d++) {
        int64_t at = g->place[d][coordinate_of(g, x[d])];
        if (at < 0)
            return -1;
        place = place * g->seen[d] + at;
    }
    return place;
}

int md_grid_owner(const struct md_grid *g, const double x[3])
{
    int at[3];
    for (int d = 0; d < 3; d++)
        at[d] = block_of(g->n, g->grid[d], coordinate_of(g, x[d]));
    return rank_at(g, at);
}
