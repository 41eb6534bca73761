/* cellspick.c - which cells a rank reads, and which of their particles it keeps */
#include "cells.h"
#include "mix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The first cell that no coordinate below x is in. */
static uint64_t behind(const struct limecells *c, int d, double x)
{
    if (x >= c->origin[d] + c->length[d])
        return c->cells[d];
    uint64_t i = (uint64_t)limefile_cells_locate(c, d, x);
    return x > limefile_cells_edge(c, d, i) ? i + 1 : i;
}

/* The cells from that of the lowest coordinate to that of the highest one. */
const char *lemon_cells_box_set(struct cells_box *box, const struct limecells *c,
                                const double *lower, const double *upper)
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
        box->from[d] = (uint64_t)limefile_cells_locate(c, d, lower[d]);
        box->to[d] = behind(c, d, upper[d]);
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

int64_t lemon_cells_pick(const LemonCells *cells, const struct cells_box *box,
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

/* Of a particle of the file. */
static uint64_t hash(uint64_t number)
{
    return mix64(number + MIX64_STEP);
}

uint64_t lemon_cells_sum_of(uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (uint64_t i = from; i < to; i++)
        sum += hash(i);
    return sum;
}

static void complain(struct cells_keeper *k, int code, const char *what)
{
    snprintf(k->why, sizeof k->why, "cell (%" PRIu64 ", %" PRIu64 ", %" PRIu64 "): %s",
             k->at[0], k->at[1], k->at[2], what);
    k->code = code;
}

static void begin_cell(struct cells_keeper *k)
{
    k->inside = 0;
    k->crc = 0;
    k->misplaced = false;
    k->whole = true;
    if (k->now == k->picks)
        return;
    limefile_cells_at(k->c, k->pick[k->now].cell, k->at);
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        k->low[d] = limefile_cells_edge(k->c, d, k->at[d]);
        k->high[d] = limefile_cells_edge(k->c, d, k->at[d] + 1);
        k->whole = k->whole && k->box->lower[d] <= k->low[d] && k->box->upper[d] >= k->high[d];
    }
}

void lemon_cells_keeper_set(struct cells_keeper *k, const LemonCells *cells,
                            const struct cells_box *box, const struct cells_pick *pick,
                            int64_t picks, char *particles)
{
    const struct limecells *c = (const struct limecells *)cells->internal;
    *k = (struct cells_keeper){
        .c = c,
        .position = limefile_cells_find(c, "position"),
        .cell = cells->cell,
        .box = box,
        .pick = pick,
        .picks = picks,
        .particles = particles,
        .to = particles,
        .swap = c->big_endian != lemon_cells_is_big_endian(),
    };
    begin_cell(k);
}

int64_t lemon_cells_keeper_kept(const struct cells_keeper *k)
{
    return (k->to - k->particles) / (int64_t)k->c->particle_bytes;
}

/* By the edges; what is on one of the domain's upper faces, by the rule. */
static bool is_in_cell(const struct cells_keeper *k, const double x[LIMECELLS_DIMS])
{
    for (int d = 0; d < LIMECELLS_DIMS; d++)
        if (!(x[d] >= k->low[d] && x[d] < k->high[d]) &&
            limefile_cells_locate(k->c, d, x[d]) != (int64_t)k->at[d])
            return false;
    return true;
}

/* The domain's upper face belongs to a box that reaches it, if it is not its lower one. */
static bool is_in_box(const struct cells_keeper *k, const double x[LIMECELLS_DIMS])
{
    const struct cells_box *box = k->box;
    for (int d = 0; d < LIMECELLS_DIMS; d++) {
        double end = k->c->origin[d] + k->c->length[d];
        double here = limefile_cells_canonical(k->c, d, x[d]);
        bool above = here >= box->upper[d] && !(here == end && here == box->upper[d]);
        if (here < box->lower[d] || above)
            return false;
    }
    return true;
}

/* Some particles of the cell. */
static void look_at(struct cells_keeper *k, char *particle, int64_t count)
{
    const size_t bytes = k->c->particle_bytes;
    uint64_t ordinal = (uint64_t)k->pick[k->now].first + (uint64_t)k->inside / bytes;
    if (k->swap)
        lemon_cells_swap(k->c, particle, count);
    for (int64_t i = 0; i < count; i++, particle += bytes) {
        double x[LIMECELLS_DIMS];
        lemon_cells_position(k->position, particle, x);
        k->misplaced = k->misplaced || !is_in_cell(k, x);
        if (!k->whole && !is_in_box(k, x))
            continue;
        if (k->to != particle)
            memmove(k->to, particle, bytes);
        k->to += bytes;
        if (k->counts)
            k->sum += hash(ordinal + (uint64_t)i);
    }
}

static void end_cell(struct cells_keeper *k)
{
    if (k->crc != k->cell[k->pick[k->now].cell].crc)
        complain(k, LEMON_ERR_CHECKSUM, "its particles do not have the checksum of the index");
    else if (k->misplaced)
        complain(k, LEMON_ERR_READ, "it has a particle that is somewhere else");
    k->done += k->inside;
    k->now++;
    begin_cell(k);
}

void lemon_cells_keeper_reach(struct cells_keeper *k, int64_t bytes)
{
    enum {
        PIECE = 128 << 10, /* summed and looked at while it is in the cache */
    };
    const int64_t each = (int64_t)k->c->particle_bytes;
    while (k->code == LEMON_SUCCESS && k->now < k->picks) {
        int64_t all = k->pick[k->now].count * each, there = bytes - k->done;
        int64_t n = (there < all ? there - there % each : all) - k->inside;
        if (n > PIECE)
            n = PIECE < each ? each : PIECE - PIECE % each;
        if (n <= 0)
            return;
        char *from = k->particles + k->done + k->inside;
        k->crc = limefile_cells_crc(k->crc, from, (size_t)n);
        look_at(k, from, n / each);
        k->inside += n;
        if (k->inside == all)
            end_cell(k);
    }
}
