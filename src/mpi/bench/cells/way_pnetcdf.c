/*
 * way_pnetcdf.c - PnetCDF as the thesis has it (section 4.3): a variable of doubles for each
 * cell that is not empty, with 15 numbers a particle, and collective calls of all ranks; those
 * that have fewer cells take part with nothing
 */
#include "cells.h"
#include "pnetcdffile.h"
#include "ways.h"

#include <inttypes.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 21, /* particles of one call: 240 MB, as counts of bytes are ints */
};

struct cell {
    int64_t own, before, all; /* particles: of this rank, of lower ranks, of all ranks */
    int64_t sorted;           /* of this rank's in their order: where they begin */
    int variable;             /* -1: none */
};

struct pnetcdf {
    struct bench_pnetcdf_file file;
    LemonDomain domain; /* as it is in the file */
    struct cell *cell;
    double *numbers; /* of a piece */
    int64_t *order;  /* writing: the particles, sorted by cell */
};

/* ---- open and close ---- */

static int prepare(struct bench_io *io)
{
    struct pnetcdf *n = calloc(1, sizeof *n);
    if (!n)
        return bench_io_errno(io, "prepare");
    n->domain = io->cells->domain;
    io->state = n;
    return 0;
}

static void release(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    if (n) {
        free(n->cell);
        free(n->numbers);
        free(n->order);
    }
    free(n);
}

static int open_file(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    if (bench_pnetcdf_open(io, bench_task_info(io->task), &n->file) != 0)
        return -1;
    bench_pnetcdf_hints(io, &n->file);
    return 0;
}

static int sync_file(struct bench_io *io)
{
    return bench_pnetcdf_check(io, "sync", ncmpi_sync(((struct pnetcdf *)io->state)->file.id));
}

static int close_file(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    return bench_pnetcdf_close(io, &n->file);
}

/* ---- both directions ---- */

static bool make_room(struct bench_io *io, struct pnetcdf *n, int64_t particles)
{
    int64_t cells = bench_cells_all(&n->domain);
    int good;
    n->cell = calloc((size_t)cells, sizeof *n->cell);
    n->numbers = malloc((size_t)PIECE * BENCH_PARTICLE_BYTES);
    n->order = malloc((size_t)(particles + 1) * sizeof *n->order);
    good = n->cell && n->numbers && n->order;
    if (!good)
        bench_io_errno(io, "prepare");
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, io->comm);
    for (int64_t i = 0; good && i < cells; i++)
        n->cell[i].variable = -1;
    return good;
}

typedef int move_piece(struct bench_io *, struct pnetcdf *, const struct cell *, int64_t first,
                       int64_t count);

/* Those of this rank's cells that have `own` particles to move, from `before` on, in calls that
 * all ranks make equally often. */
static int move_cells(struct bench_io *io, struct pnetcdf *n, move_piece *move)
{
    int64_t cells = bench_cells_all(&n->domain), rounds = 0, most;
    const struct cell *any = NULL;
    int code = 0;
    for (int64_t i = 0; i < cells; i++) {
        rounds += (n->cell[i].own + PIECE - 1) / PIECE;
        any = n->cell[i].variable >= 0 ? &n->cell[i] : any;
    }
    MPI_Allreduce(&rounds, &most, 1, MPI_INT64_T, MPI_MAX, io->comm);
    for (int64_t i = 0; i < cells; i++)
        for (int64_t first = 0; first < n->cell[i].own; first += PIECE) {
            int64_t left = n->cell[i].own - first;
            code |= move(io, n, &n->cell[i], first, left < PIECE ? left : PIECE);
        }
    for (; rounds < most && any; rounds++)
        code |= move(io, n, any, 0, 0);
    return code;
}

static void place(const struct cell *cell, int64_t first, int64_t count, MPI_Offset *start,
                  MPI_Offset *numbers)
{
    *start = count ? (cell->before + first) * BENCH_PARTICLE_NUMBERS : 0;
    *numbers = count * BENCH_PARTICLE_NUMBERS;
}

/* ---- writing ---- */

/* Which cell each of this rank's particles is in, and how many all ranks have in each. */
static int count(struct bench_io *io, struct pnetcdf *n)
{
    const struct bench_cells *c = io->cells;
    int64_t cells = bench_cells_all(&n->domain), first = 0;
    int64_t *counts = calloc((size_t)cells * 3, sizeof *counts);
    int64_t *before = counts ? counts + cells : NULL, *all = counts ? before + cells : NULL;
    int good = counts != NULL;
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, io->comm);
    for (int64_t i = 0; good && i < c->count; i++) {
        double at[BENCH_SPACE];
        bench_particle_where(c->data + i * BENCH_PARTICLE_BYTES, at);
        counts[bench_cells_number(&n->domain, at)]++;
    }
    if (good) {
        MPI_Exscan(counts, before, (int)cells, MPI_INT64_T, MPI_SUM, io->comm);
        MPI_Allreduce(counts, all, (int)cells, MPI_INT64_T, MPI_SUM, io->comm);
    }
    for (int64_t i = 0; good && i < cells; i++) {
        n->cell[i] = (struct cell){counts[i], io->rank ? before[i] : 0, all[i], first, -1};
        counts[i] = first;
        first += n->cell[i].own;
    }
    for (int64_t i = 0; good && i < c->count; i++) {
        double at[BENCH_SPACE];
        bench_particle_where(c->data + i * BENCH_PARTICLE_BYTES, at);
        n->order[counts[bench_cells_number(&n->domain, at)]++] = i;
    }
    free(counts);
    return good ? 0 : bench_io_fail(io, "write", "out of memory");
}

static int define(struct bench_io *io, struct pnetcdf *n)
{
    int64_t cells = bench_cells_all(&n->domain);
    long long extents[BENCH_SPACE], particles = io->cells->gas.particles;
    for (int d = 0; d < BENCH_SPACE; d++)
        extents[d] = n->domain.cells[d];
    int code =
        ncmpi_put_att_longlong(n->file.id, NC_GLOBAL, "cells", NC_INT64, BENCH_SPACE, extents);
    if (code == NC_NOERR)
        code = ncmpi_put_att_double(n->file.id, NC_GLOBAL, "length", NC_DOUBLE, BENCH_SPACE,
                                    n->domain.length);
    if (code == NC_NOERR)
        code =
            ncmpi_put_att_longlong(n->file.id, NC_GLOBAL, "particles", NC_INT64, 1, &particles);
    for (int64_t i = 0; i < cells && code == NC_NOERR; i++) {
        char name[32];
        int dim;
        if (n->cell[i].all == 0)
            continue; /* a dimension of 0 is one that grows */
        snprintf(name, sizeof name, "d%" PRId64, i);
        code = ncmpi_def_dim(n->file.id, name, n->cell[i].all * BENCH_PARTICLE_NUMBERS, &dim);
        name[0] = 'v';
        if (code == NC_NOERR)
            code = ncmpi_def_var(n->file.id, name, NC_DOUBLE, 1, &dim, &n->cell[i].variable);
    }
    if (code == NC_NOERR)
        code = ncmpi_enddef(n->file.id);
    return bench_pnetcdf_check(io, "define", code);
}

static int write_piece(struct bench_io *io, struct pnetcdf *n, const struct cell *cell,
                       int64_t first, int64_t count)
{
    MPI_Offset start, numbers;
    const int64_t *order = n->order + cell->sorted + first;
    for (int64_t i = 0; i < count; i++)
        bench_particle_numbers(io->cells->data + order[i] * BENCH_PARTICLE_BYTES,
                               n->numbers + i * BENCH_PARTICLE_NUMBERS);
    place(cell, first, count, &start, &numbers);
    return bench_pnetcdf_check(
        io, "write",
        ncmpi_put_vara_double_all(n->file.id, cell->variable, &start, &numbers, n->numbers));
}

static int write_all(struct bench_io *io, struct pnetcdf *n)
{
    if (!make_room(io, n, io->cells->count) || count(io, n) != 0 || define(io, n) != 0)
        return -1;
    return move_cells(io, n, write_piece);
}

/* ---- reading ---- */

/* The cells in the file and what this rank reads of them: all of those that touch its box. */
static bool touches(const LemonDomain *domain, int64_t number,
                    const struct bench_cells_box *box)
{
    for (int d = BENCH_SPACE - 1; d >= 0; d--) {
        double edge = domain->length[d] / (double)domain->cells[d];
        double lower = (double)(number % domain->cells[d]) * edge;
        double slack = edge * 1e-9; /* who computes an edge otherwise gets another last bit */
        if (!(box->lower[d] < lower + edge + slack && box->upper[d] > lower - slack))
            return false;
        number /= domain->cells[d];
    }
    return true;
}

static int find_variable(struct bench_io *io, struct pnetcdf *n, int variable)
{
    char name[NC_MAX_NAME + 1], *end;
    int dim;
    MPI_Offset length = 0;
    int code = ncmpi_inq_varname(n->file.id, variable, name);
    if (code == NC_NOERR)
        code = ncmpi_inq_vardimid(n->file.id, variable, &dim);
    if (code == NC_NOERR)
        code = ncmpi_inq_dimlen(n->file.id, dim, &length);
    if (code != NC_NOERR)
        return bench_pnetcdf_check(io, "find variables", code);
    int64_t number = strtoll(name + 1, &end, 10);
    if (name[0] != 'v' || *end || number < 0 || number >= bench_cells_all(&n->domain))
        return bench_io_fail(io, "find variables", "%s: not one of a cell", name);
    bool own = touches(&n->domain, number, &io->cells->reader[io->rank]);
    int64_t all = length / BENCH_PARTICLE_NUMBERS;
    n->cell[number] = (struct cell){own ? all : 0, 0, all, 0, variable};
    return 0;
}

static int find_domain(struct bench_io *io, struct pnetcdf *n)
{
    long long extents[BENCH_SPACE] = {0};
    int code = ncmpi_get_att_longlong(n->file.id, NC_GLOBAL, "cells", extents);
    if (code == NC_NOERR)
        code = ncmpi_get_att_double(n->file.id, NC_GLOBAL, "length", n->domain.length);
    if (code != NC_NOERR)
        return bench_pnetcdf_check(io, "find cells", code);
    for (int d = 0; d < BENCH_SPACE; d++) {
        if (extents[d] < 1 || extents[d] > BENCH_CELLS_MAX)
            return bench_io_fail(io, "find cells", "%lld in a dimension", extents[d]);
        n->domain.cells[d] = extents[d];
    }
    return bench_cells_all(&n->domain) <= BENCH_CELLS_MAX
               ? 0
               : bench_io_fail(io, "find cells", "too many");
}

static int read_piece(struct bench_io *io, struct pnetcdf *n, const struct cell *cell,
                      int64_t first, int64_t count)
{
    struct bench_cells *c = io->cells;
    MPI_Offset start, numbers;
    place(cell, first, count, &start, &numbers);
    int code = bench_pnetcdf_check(
        io, "read",
        ncmpi_get_vara_double_all(n->file.id, cell->variable, &start, &numbers, n->numbers));
    if (code != 0 || count == 0)
        return code;
    if (!bench_cells_append(c, count))
        return bench_io_errno(io, "read");
    for (int64_t i = 0; i < count; i++) {
        const double *particle = n->numbers + i * BENCH_PARTICLE_NUMBERS;
        if (bench_cells_holds(&c->reader[io->rank], particle + 2))
            bench_particle_of(particle, c->data + c->count++ * BENCH_PARTICLE_BYTES);
    }
    return 0;
}

static int read_all(struct bench_io *io, struct pnetcdf *n)
{
    int variables = 0, code = find_domain(io, n);
    if (code == 0)
        code =
            bench_pnetcdf_check(io, "find variables", ncmpi_inq_nvars(n->file.id, &variables));
    if (code != 0 || !make_room(io, n, 0)) /* all ranks see the same file */
        return -1;
    for (int i = 0; i < variables && code == 0; i++)
        code = find_variable(io, n, i);
    return code ? code : move_cells(io, n, read_piece);
}

static int transfer(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    return io->writing ? write_all(io, n) : read_all(io, n);
}

const struct bench_backend bench_way_pnetcdf = {
    .name = "pnetcdf",
    .about = "PnetCDF, a variable for each cell",
    .abilities = BENCH_CAN_HINT | BENCH_CAN_LEAVE,
    .patterns = BENCH_ALL_PATTERNS,
    .is_fragile = true,
    .prepare = prepare,
    .open = open_file,
    .transfer = transfer,
    .sync = sync_file,
    .close = close_file,
    .release = release,
};
