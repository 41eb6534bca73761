/* model_cells.c - particles in cells: who has which */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXAMPLES = 1 << 25, /* particles that are made up, at most; they stand for all */
};

/* ---- the cells' particles ---- */

static void count_examples(struct model_cells *c, int64_t examples)
{
    for (int64_t id = 1; id <= examples; id++) {
        double at[BENCH_SPACE];
        int64_t number = 0;
        bench_particle_position(&c->gas, id, at);
        for (int d = 0; d < BENCH_SPACE; d++) {
            int64_t i = (int64_t)(at[d] / c->gas.length * (double)c->cells[d]);
            number = number * c->cells[d] + (i < c->cells[d] ? i : c->cells[d] - 1);
        }
        c->count[number]++;
    }
}

static void count(struct model_cells *c)
{
    int64_t all = c->gas.particles, examples = all < EXAMPLES ? all : EXAMPLES, before = 0;
    double each = (double)all / (double)examples;
    count_examples(c, examples);
    for (int64_t i = 0, seen = 0; i < c->all && examples < all; i++) {
        seen += c->count[i];
        int64_t reached = seen == examples ? all : (int64_t)((double)seen * each);
        c->count[i] = reached - before;
        before = reached;
    }
}

/* ---- the ranks' cells ---- */

/* Prime factors, the largest first, each to the dimension with the fewest ranks; then the most
 * come first, as MPI_Dims_create() has them. */
void model_cells_grid(int64_t ranks, int64_t grid[BENCH_SPACE])
{
    for (int d = 0; d < BENCH_SPACE; d++)
        grid[d] = 1;
    for (int64_t left = ranks, factor; left > 1; left /= factor) {
        int least = 0;
        factor = left;
        for (int64_t p = 2; p * p <= factor; p++)
            while (factor % p == 0 && factor > p)
                factor /= p;
        for (int d = 1; d < BENCH_SPACE; d++)
            least = grid[d] < grid[least] ? d : least;
        grid[least] *= factor;
    }
    for (int i = 0; i < BENCH_SPACE; i++)
        for (int d = 0; d + 1 < BENCH_SPACE; d++)
            if (grid[d] < grid[d + 1]) {
                int64_t other = grid[d];
                grid[d] = grid[d + 1];
                grid[d + 1] = other;
            }
}

/* Cells [from, to) of each dimension. */
struct part {
    int64_t from[BENCH_SPACE], to[BENCH_SPACE];
};

static int64_t number_of(const struct model_cells *c, const int64_t at[BENCH_SPACE])
{
    return (at[0] * c->cells[1] + at[1]) * c->cells[2] + at[2];
}

/* A cell that two boxes have parts of is its first one's. */
static void deal_regular(struct model_cells *c, int64_t ranks)
{
    int64_t grid[BENCH_SPACE], at[BENCH_SPACE];
    model_cells_grid(ranks, grid);
    for (at[0] = 0; at[0] < c->cells[0]; at[0]++)
        for (at[1] = 0; at[1] < c->cells[1]; at[1]++)
            for (at[2] = 0; at[2] < c->cells[2]; at[2]++) {
                int64_t rank = 0;
                for (int d = 0; d < BENCH_SPACE; d++)
                    rank = rank * grid[d] + at[d] * grid[d] / c->cells[d];
                c->owner[number_of(c, at)] = rank;
            }
}

static int64_t count_part(const struct model_cells *c, const struct part *part)
{
    int64_t sum = 0, at[BENCH_SPACE];
    for (at[0] = part->from[0]; at[0] < part->to[0]; at[0]++)
        for (at[1] = part->from[1]; at[1] < part->to[1]; at[1]++)
            for (at[2] = part->from[2]; at[2] < part->to[2]; at[2]++)
                sum += c->count[number_of(c, at)];
    return sum;
}

static void give(struct model_cells *c, const struct part *part, int64_t rank)
{
    int64_t at[BENCH_SPACE];
    for (at[0] = part->from[0]; at[0] < part->to[0]; at[0]++)
        for (at[1] = part->from[1]; at[1] < part->to[1]; at[1]++)
            for (at[2] = part->from[2]; at[2] < part->to[2]; at[2]++)
                c->owner[number_of(c, at)] = rank;
}

/* Halves the ranks, and the part in its longest dimension, where the particles are divided
 * best; what is one cell goes to one rank, and the others have none. */
static void deal_kd(struct model_cells *c, const struct part *part, int64_t rank, int64_t ranks)
{
    int longest = 0;
    for (int d = 1; d < BENCH_SPACE; d++)
        if (part->to[d] - part->from[d] > part->to[longest] - part->from[longest])
            longest = d;
    if (ranks == 1 || part->to[longest] - part->from[longest] == 1) {
        give(c, part, rank);
        return;
    }
    int64_t half = ranks / 2, below = 0;
    double want = (double)count_part(c, part) * (double)half / (double)ranks;
    struct part lower = *part, upper = *part, slab = *part;
    for (int64_t at = part->from[longest]; at + 1 < part->to[longest]; at++) {
        slab.from[longest] = at;
        slab.to[longest] = at + 1;
        int64_t more = count_part(c, &slab);
        if (at > part->from[longest] &&
            fabs((double)(below + more) - want) > fabs((double)below - want))
            break;
        below += more;
        lower.to[longest] = upper.from[longest] = at + 1;
    }
    deal_kd(c, &lower, rank, half);
    deal_kd(c, &upper, rank + half, ranks - half);
}

/* ---- all ---- */

static void list_own(struct model_cells *c, int64_t ranks)
{
    for (int64_t i = 0; i < c->all; i++) {
        c->held[c->owner[i]] += c->count[i];
        c->first[c->owner[i] + 1] += c->count[i] > 0;
    }
    for (int64_t rank = 0; rank < ranks; rank++)
        c->first[rank + 1] += c->first[rank];
    for (int64_t i = c->all - 1; i >= 0;
         i--) /* `first` is each rank's end while it is filled */
        if (c->count[i] > 0)
            c->own[--c->first[c->owner[i] + 1]] = i;
    memmove(c->first, c->first + 1, (size_t)ranks * sizeof *c->first);
    c->first[ranks] = 0;
    for (int64_t i = 0; i < c->all; i++)
        c->first[ranks] += c->count[i] > 0;
}

bool model_cells_make(struct model_cells *c, int64_t ranks)
{
    c->all = c->cells[0] * c->cells[1] * c->cells[2];
    c->count = calloc((size_t)c->all, sizeof *c->count);
    c->owner = calloc((size_t)c->all, sizeof *c->owner);
    c->own = calloc((size_t)c->all, sizeof *c->own);
    c->held = calloc((size_t)ranks, sizeof *c->held);
    c->first = calloc((size_t)ranks + 1, sizeof *c->first);
    if (!c->count || !c->owner || !c->own || !c->held || !c->first)
        return false;
    count(c);
    if (c->kd)
        deal_kd(c, &(struct part){.to = {c->cells[0], c->cells[1], c->cells[2]}}, 0, ranks);
    else
        deal_regular(c, ranks);
    list_own(c, ranks);
    return true;
}

void model_cells_free(struct model_cells *c)
{
    free(c->count);
    free(c->owner);
    free(c->own);
    free(c->held);
    free(c->first);
}
