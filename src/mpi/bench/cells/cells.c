/* cells.c - a gas, divided among ranks */
#include "cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FINE = 16, /* cells in each dimension, for a k-d decomposition */
};

static const LemonField fields[] = {
    {"id", LEMON_UINT64, 1, BENCH_AT_ID},
    {"component", LEMON_UINT32, 1, BENCH_AT_COMPONENT},
    {"position", LEMON_FLOAT64, 3, BENCH_AT_POSITION},
    {"velocity", LEMON_FLOAT64, 3, BENCH_AT_VELOCITY},
    {"orientation", LEMON_FLOAT64, 4, BENCH_AT_ORIENTATION},
    {"angular-momentum", LEMON_FLOAT64, 3, BENCH_AT_MOMENTUM},
};

const LemonParticle bench_cells_particle = {
    .bytes = BENCH_PARTICLE_BYTES,
    .fields = sizeof fields / sizeof *fields,
    .field = fields,
};

/* ---- places ---- */

bool bench_cells_holds(const struct bench_cells_box *box, const double at[BENCH_SPACE])
{
    for (int d = 0; d < BENCH_SPACE; d++)
        if (!(at[d] >= box->lower[d] && at[d] < box->upper[d]))
            return false;
    return true;
}

int64_t bench_cells_all(const LemonDomain *domain)
{
    return domain->cells[0] * domain->cells[1] * domain->cells[2];
}

int64_t bench_cells_number(const LemonDomain *domain, const double at[BENCH_SPACE])
{
    int64_t number = 0;
    for (int d = 0; d < BENCH_SPACE; d++) {
        double cells = (double)domain->cells[d];
        double i = floor((at[d] - domain->origin[d]) / domain->length[d] * cells);
        if (!(i >= 0 && i <= cells))
            return 0;
        number = number * domain->cells[d] + (i < cells ? (int64_t)i : domain->cells[d] - 1);
    }
    return number;
}

void bench_cells_choose(const struct bench_cells_wish *wish, int ranks,
                        int64_t cells[BENCH_SPACE])
{
    int grid[BENCH_SPACE] = {0};
    bool fine = wish->writing == BENCH_KD || wish->reading == BENCH_KD;
    MPI_Dims_create(ranks, BENCH_SPACE, grid);
    for (int d = 0; d < BENCH_SPACE; d++)
        cells[d] = wish->cells[0] ? wish->cells[d] : fine ? FINE : grid[d];
}

/* ---- who has what ---- */

/* How many particles each cell has; NULL: no memory, on any rank. Collective. */
static LemonCell *count_cells(const struct bench_cells *c, MPI_Comm comm)
{
    int64_t cells = bench_cells_all(&c->domain);
    int64_t *counts = calloc((size_t)cells, sizeof *counts);
    LemonCell *all = calloc((size_t)cells, sizeof *all);
    int rank, good = counts && all;
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, comm);
    for (int64_t id = 1 + rank; good && id <= c->gas.particles; id += c->ranks) {
        double at[BENCH_SPACE];
        bench_particle_position(&c->gas, id, at);
        counts[bench_cells_number(&c->domain, at)]++;
    }
    if (good)
        MPI_Allreduce(MPI_IN_PLACE, counts, (int)cells, MPI_INT64_T, MPI_SUM, comm);
    for (int64_t i = 0, first = 0; good && i < cells; first += counts[i++])
        all[i] = (LemonCell){.first = counts[i] ? first : 0, .count = counts[i]};
    free(counts);
    if (good)
        return all;
    free(all);
    return NULL;
}

/* The boxes of one decomposition; a code of Lemon's. */
static int divide(const struct bench_cells *c, enum bench_decomposition decomposition,
                  const LemonCell *cell, struct bench_cells_box *boxes)
{
    const LemonCells counted = {.domain = c->domain,
                                .particle = bench_cells_particle,
                                .particles = c->gas.particles,
                                .cell = cell};
    int code = LEMON_SUCCESS;
    for (int i = 0; i < c->ranks && code == LEMON_SUCCESS; i++) {
        double *lower = boxes[i].lower, *upper = boxes[i].upper;
        code = decomposition == BENCH_KD
                   ? lemonBalancedBox(&counted, c->ranks, i, lower, upper)
                   : lemonRegularBox(&c->domain, NULL, c->ranks, i, lower, upper);
    }
    return code;
}

static void count_own(struct bench_cells *c, MPI_Comm writers, MPI_Comm readers)
{
    int writer, reader;
    MPI_Comm_rank(writers, &writer);
    MPI_Comm_rank(readers, &reader);
    for (int64_t id = 1; id <= c->gas.particles; id++) {
        double at[BENCH_SPACE];
        bench_particle_position(&c->gas, id, at);
        c->written += bench_cells_holds(&c->writer[writer], at);
        c->read += bench_cells_holds(&c->reader[reader], at);
    }
}

bool bench_cells_set(struct bench_cells *c, const struct bench_cells_wish *wish,
                     MPI_Comm writers, MPI_Comm readers, int *code)
{
    LemonCell *cell = NULL;
    bool counts = wish->writing == BENCH_KD || wish->reading == BENCH_KD;
    *c = (struct bench_cells){0};
    *code = LEMON_SUCCESS;
    /* One particle in each unit of space, as in a simulation in reduced units. */
    c->gas =
        (struct bench_gas){wish->particles, cbrt((double)wish->particles), wish->distribution};
    for (int d = 0; d < BENCH_SPACE; d++) {
        c->domain.length[d] = c->gas.length;
        c->domain.periodic[d] = 1;
    }
    MPI_Comm_size(writers, &c->ranks);
    bench_cells_choose(wish, c->ranks, c->domain.cells);
    c->writer = calloc((size_t)c->ranks, sizeof *c->writer);
    c->reader = calloc((size_t)c->ranks, sizeof *c->reader);
    int good = c->writer && c->reader;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, writers);
    if (!good || (counts && !(cell = count_cells(c, writers))))
        return false;
    *code = divide(c, wish->writing, cell, c->writer);
    if (*code == LEMON_SUCCESS)
        *code = divide(c, wish->reading, cell, c->reader);
    free(cell);
    if (*code == LEMON_SUCCESS)
        count_own(c, writers, readers);
    return *code == LEMON_SUCCESS;
}

void bench_cells_free(struct bench_cells *c)
{
    bench_cells_empty(c);
    free(c->writer);
    free(c->reader);
    c->writer = c->reader = NULL;
}

/* ---- particles ---- */

void bench_cells_empty(struct bench_cells *c)
{
    free(c->data);
    c->data = NULL;
    c->count = c->room = 0;
    c->anywhere = false;
}

char *bench_cells_append(struct bench_cells *c, int64_t n)
{
    if (c->count + n > c->room) {
        int64_t room = c->room * 2 > c->count + n ? c->room * 2 : c->count + n;
        char *data = realloc(c->data, (size_t)room * BENCH_PARTICLE_BYTES);
        if (!data)
            return NULL;
        c->data = data;
        c->room = room;
    }
    return c->data + c->count * BENCH_PARTICLE_BYTES;
}

bool bench_cells_fill(struct bench_cells *c, int rank, uint64_t seed)
{
    bench_cells_empty(c);
    if (c->written > 0 && !bench_cells_append(c, c->written))
        return false;
    for (int64_t id = 1; id <= c->gas.particles && c->count < c->written; id++) {
        double at[BENCH_SPACE];
        bench_particle_position(&c->gas, id, at);
        if (bench_cells_holds(&c->writer[rank], at))
            bench_particle_make(&c->gas, seed, id, c->data + c->count++ * BENCH_PARTICLE_BYTES);
    }
    return true;
}
