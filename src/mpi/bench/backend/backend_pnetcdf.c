/* backend_pnetcdf.c - PnetCDF: one variable of bytes in a NetCDF file of the classic kind */
#include "dataset.h"
#include "pnetcdffile.h"
#include "table.h"

#include <inttypes.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

#define VARIABLE "data"

struct pnetcdf {
    struct bench_dataset set;
    struct bench_pnetcdf_file file;
    int variable;
    bool is_independent;
};

const char *bench_pnetcdf_version(void)
{
    return PNETCDF_VERSION;
}

static int prepare(struct bench_io *io)
{
    struct pnetcdf *n = calloc(1, sizeof *n);
    if (!n)
        return bench_io_errno(io, "prepare");
    bench_dataset_set(&n->set, io->task);
    io->state = n;
    return 0;
}

static void release(struct bench_io *io)
{
    free(io->state);
}

/* ---- open and close ---- */

/* The alignment is a hint to this library. */
static MPI_Info info_of(const struct bench_task *task)
{
    MPI_Info info = bench_task_info(task);
    char text[32];
    if (!task->alignment)
        return info;
    if (info == MPI_INFO_NULL)
        MPI_Info_create(&info);
    snprintf(text, sizeof text, "%" PRId64, task->alignment);
    MPI_Info_set(info, "nc_var_align_size", text);
    MPI_Info_set(info, "nc_header_align_size", text);
    return info;
}

static int define(struct bench_io *io, struct pnetcdf *n)
{
    int dims[BENCH_DATASET_DIMS], code = NC_NOERR;
    for (int d = 0; d < n->set.dims && code == NC_NOERR; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%d", d);
        bool grows = io->task->unlimited && d == 0;
        code =
            ncmpi_def_dim(n->file.id, name, grows ? NC_UNLIMITED : n->set.extent[d], &dims[d]);
    }
    if (code == NC_NOERR)
        code = ncmpi_def_var(n->file.id, VARIABLE, NC_BYTE, n->set.dims, dims, &n->variable);
    if (code == NC_NOERR)
        code = ncmpi_def_var_fill(n->file.id, n->variable, 1, NULL);
    if (code == NC_NOERR)
        code = ncmpi_enddef(n->file.id);
    return bench_pnetcdf_check(io, "define", code);
}

static int open_file(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    if (bench_pnetcdf_open(io, info_of(io->task), &n->file) != 0)
        return -1;
    if (io->writing && define(io, n) != 0)
        return -1;
    bench_pnetcdf_hints(io, &n->file);
    if (!io->writing &&
        bench_pnetcdf_check(io, "find variable",
                            ncmpi_inq_varid(n->file.id, VARIABLE, &n->variable)) != 0)
        return -1;
    if (bench_is_collective(io->task))
        return 0;
    int code = ncmpi_begin_indep_data(n->file.id);
    n->is_independent = code == NC_NOERR;
    return bench_pnetcdf_check(io, "set mode", code);
}

static int end_independent(struct bench_io *io, struct pnetcdf *n)
{
    if (!n->is_independent)
        return 0;
    n->is_independent = false;
    return bench_pnetcdf_check(io, "end independent mode", ncmpi_end_indep_data(n->file.id));
}

static int close_file(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    int code = n->file.is_open ? end_independent(io, n) : 0;
    return bench_pnetcdf_close(io, &n->file) | code;
}

/* ---- data ---- */

static int move(struct bench_io *io, struct pnetcdf *n, const struct bench_slab *slab)
{
    MPI_Offset start[BENCH_DATASET_DIMS], count[BENCH_DATASET_DIMS];
    signed char *data = (signed char *)io->data + slab->memory;
    bool collective = bench_is_collective(io->task);
    int code;
    for (int d = 0; d < n->set.dims; d++) {
        start[d] = slab->start[d];
        count[d] = slab->count[d];
    }
    if (io->writing && collective)
        code = ncmpi_put_vara_schar_all(n->file.id, n->variable, start, count, data);
    else if (io->writing)
        code = ncmpi_put_vara_schar(n->file.id, n->variable, start, count, data);
    else if (collective)
        code = ncmpi_get_vara_schar_all(n->file.id, n->variable, start, count, data);
    else
        code = ncmpi_get_vara_schar(n->file.id, n->variable, start, count, data);
    return bench_pnetcdf_check(io, io->writing ? "write" : "read", code);
}

static int transfer(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    bool collective = bench_is_collective(io->task);
    int64_t rounds = bench_dataset_rounds(&n->set);
    int code = 0;
    for (int64_t i = 0; i < rounds && (collective || code == 0); i++) {
        struct bench_slab slab;
        bench_dataset_slab(&n->set, io->rank, i, &slab);
        if (slab.bytes || collective)
            code |= move(io, n, &slab);
    }
    return code;
}

static int sync_file(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    int code = end_independent(io, n);
    return bench_pnetcdf_check(io, "sync", ncmpi_sync(n->file.id)) | code;
}

const struct bench_backend bench_pnetcdf = {
    .name = "pnetcdf",
    .about = "PnetCDF, one variable of a CDF-5 file",
    .abilities = BENCH_CAN_DATASET,
    .patterns = BENCH_ALL_PATTERNS,
    .is_fragile = true,
    .refuses = bench_dataset_refuses,
    .prepare = prepare,
    .open = open_file,
    .transfer = transfer,
    .sync = sync_file,
    .close = close_file,
    .release = release,
};
