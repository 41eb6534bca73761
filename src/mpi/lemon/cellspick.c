/* cellspick.c - which cells a rank reads, and which of their particles it keeps */
#include "cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The cells from that of the lowest coordinate to that of the highest one. */
const char *cells_box_set(struct cells_box *box, const struct limecells *c, const double *lower,
                          const double *upper)
{
    bool empty = false;
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double end = c->origin[d] + c->length[d];
        if (!(lower[d] >= c->origin[d] && lower[d] <= end && upper[d] >= c->origin[d] &&
              upper[d] <= end))
            return "a box reaches beyond the domain, or is no number";
        box->lower[d] = lower[d];
        box->upper[d] = upper[d];
        empty = empty || !(lower[d] < upper[d]);
    }
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        box->from[d] = box->to[d] = 0;
        if (empty)
            continue;
        double last = nextafter(upper[d], -INFINITY);
        box->from[d] = (uint64_t)limecells_locate(c, d, lower[d]);
        box->to[d] = (uint64_t)limecells_locate(c, d, last) + 1;
    }
    return NULL;
}

static int by_first(const void *a, const void *b)
{
    const struct cells_pick *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static uint64_t number(const LemonCells *cells, uint64_t x, uint64_t y, uint64_t z)
{
    const int64_t *n = cells->domain.cells;
    return (x * (uint64_t)n[1] + y) * (uint64_t)n[2] + z;
}

int64_t cells_pick(const LemonCells *cells, const struct cells_box *box,
                   struct cells_pick **pick)
{
    uint64_t most = 1;
    int64_t n = 0;
    bool in_order = true;
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        most *= box->to[d] - box->from[d];
    *pick = malloc((size_t)most * sizeof **pick + 1);
    if (!*pick)
        return -1;
    for (uint64_t x = box->from[0]; x < box->to[0]; x++)
        for (uint64_t y = box->from[1]; y < box->to[1]; y++)
            for (uint64_t z = box->from[2]; z < box->to[2]; z++) {
                uint64_t i = number(cells, x, y, z);
                if (cells->cell[i].count == 0)
                    continue;
                in_order = in_order && (n == 0 || cells->cell[i].first > (*pick)[n - 1].first);
                (*pick)[n++] =
                    (struct cells_pick){i, cells->cell[i].first, cells->cell[i].count};
            }
    if (!in_order)
        qsort(*pick, (size_t)n, sizeof **pick, by_first);
    return n;
}

/* ---- what has come ---- */

static uint64_t mix(uint64_t word)
{
    word += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

uint64_t cells_sum_of(uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (uint64_t i = from; i < to; i++)
        sum += mix(i);
    return sum;
}

/* What is the same for all particles of a call. */
struct keeper {
    const struct limecells *c;
    const struct limecells_field *position;
    const struct cells_box *box;
    uint64_t at[LIMECELLS_DIMS]; /* of the cell */
    bool whole;                  /* the cell is inside of the box */
};

static void complain(const uint64_t at[LIMECELLS_DIMS], const char *what,
                     char why[CELLS_WHY_MAX])
{
    snprintf(why, CELLS_WHY_MAX, "cell (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %s", at[0],
             at[1], at[2], what);
}

static void begin_cell(struct keeper *keeper, uint64_t cell)
{
    const struct cells_box *box = keeper->box;
    limecells_at(keeper->c, cell, keeper->at);
    keeper->whole = true;
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        keeper->whole =
            keeper->whole && keeper->at[d] > box->from[d] && keeper->at[d] + 1 < box->to[d];
}

static bool is_in_cell(const struct keeper *keeper, const double x[LIMECELLS_DIMS])
{
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        if (limecells_locate(keeper->c, d, x[d]) != (int64_t)keeper->at[d])
            return false;
    return true;
}

/* The domain's upper face belongs to a box that reaches it, if it is not its lower one. */
static bool is_in_box(const struct keeper *keeper, const double x[LIMECELLS_DIMS])
{
    const struct cells_box *box = keeper->box;
    for (int d = 0; d < LIMECELLS_DIMS && !keeper->whole; d++) {
        double end = keeper->c->origin[d] + keeper->c->length[d];
        double here = limecells_canonical(keeper->c, d, x[d]);
        if (here < box->lower[d] ||
            (here >= box->upper[d] && !(here == end && here == box->upper[d])))
            return false;
    }
    return true;
}

/* Moves those that are kept to `to`. -1: one is not in its cell. */
static int64_t keep_cell(const struct keeper *keeper, const char *particles, uint64_t first,
                         int64_t count, char *to, uint64_t *sum)
{
    const size_t bytes = keeper->c->particle_bytes;
    int64_t kept = 0;
    for (int64_t k = 0; k < count; k++, particles += bytes) {
        double x[LIMECELLS_DIMS];
        cells_position(keeper->c, keeper->position, particles, x);
        if (!is_in_cell(keeper, x))
            return -1;
        if (!is_in_box(keeper, x))
            continue;
        char *place = to + (size_t)kept++ * bytes;
        if (place != particles)
            memmove(place, particles, bytes);
        *sum += mix(first + (uint64_t)k);
    }
    return kept;
}

int64_t cells_keep(const LemonCells *cells, const struct cells_box *box,
                   const struct cells_pick *pick, int64_t picks, char *particles, uint64_t *sum,
                   int *code, char why[CELLS_WHY_MAX])
{
    const struct limecells *c = (const struct limecells *)cells->internal;
    struct keeper keeper = {c, limecells_find(c, "position"), box, {0}, false};
    const int64_t bytes = (int64_t)c->particle_bytes;
    char *from = particles, *to = particles;
    for (int64_t i = 0; i < picks; i++, from += pick[i - 1].count * bytes) {
        size_t n = (size_t)(pick[i].count * bytes);
        begin_cell(&keeper, pick[i].cell);
        if (limecells_crc(0, from, n) != cells->cell[pick[i].cell].crc) {
            complain(keeper.at, "its particles do not have the checksum of the index", why);
            *code = LEMON_ERR_CHECKSUM;
            return -1;
        }
        if (c->big_endian != cells_is_big_endian())
            cells_swap(c, from, pick[i].count);
        int64_t kept =
            keep_cell(&keeper, from, (uint64_t)pick[i].first, pick[i].count, to, sum);
        if (kept < 0) {
            complain(keeper.at, "it has a particle that is somewhere else", why);
            *code = LEMON_ERR_READ;
            return -1;
        }
        to += kept * bytes;
    }
    return (to - particles) / bytes;
}
