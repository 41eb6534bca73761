/* rule.c - which cell a coordinate is in */
#include "limecells.h"

#include <math.h>

double limefile_cells_edge(const struct limecells *c, int d, uint64_t i)
{
    return c->origin[d] + c->length[d] * ((double)i / (double)c->cells[d]);
}

double limefile_cells_canonical(const struct limecells *c, int d, double x)
{
    return c->periodic[d] && x == c->origin[d] + c->length[d] ? c->origin[d] : x;
}

/* Rounding may have led to a neighbour of the right cell; the edges decide. */
static int64_t by_edges(const struct limecells *c, int d, double x, int64_t i)
{
    while (i > 0 && x < limefile_cells_edge(c, d, (uint64_t)i))
        i--;
    while (i + 1 < (int64_t)c->cells[d] && x >= limefile_cells_edge(c, d, (uint64_t)i + 1))
        i++;
    return i;
}

int64_t limefile_cells_locate(const struct limecells *c, int d, double x)
{
    const double near = 0x1p-7; /* more than a few roundings: limefile_cells_check() */
    double end = c->origin[d] + c->length[d];
    if (!(x >= c->origin[d] && x <= end))
        return -1;
    x = limefile_cells_canonical(c, d, x);
    double place = (x - c->origin[d]) / c->length[d] * (double)c->cells[d];
    int64_t i = (int64_t)place;
    if (i >= (int64_t)c->cells[d])
        i = (int64_t)c->cells[d] - 1;
    double inside = place - (double)i;
    return inside > near && inside < 1 - near ? i : by_edges(c, d, x, i);
}
