/* backend_pnetcdf.c - PnetCDF: one variable of bytes in a classic NetCDF file */
#include "backend_common.h"

#include <inttypes.h>
#include <pnetcdf.h>
#include <stdio.h>

#define VARIABLE "data"

struct pnetcdf {
    struct bench_dataset set;
    int file, variable;
    bool is_open, is_independent;
};

const char *bench_pnetcdf_version(void)
{
    return PNETCDF_VERSION;
}

static int pnetcdf_check(struct bench_io *io, const char *action, int result)
{
    return result == NC_NOERR ? 0 : bench_io_fail(io, action, "%s", ncmpi_strerror(result));
}

static int pnetcdf_prepare(struct bench_io *io)
{
    bench_dataset_init(&((struct pnetcdf *)io->state)->set, io->task);
    return 0;
}

/* Returns the task's hints, and hints that set PnetCDF's alignment. The caller frees them. */
static MPI_Info create_info_aligned(const struct bench_task *task)
{
    MPI_Info info = bench_info_create(task);
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

static int pnetcdf_define(struct bench_io *io, struct pnetcdf *n)
{
    int dims[BENCH_DATASET_DIMS], code = NC_NOERR;
    for (int d = 0; d < n->set.dims && code == NC_NOERR; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%d", d);
        bool grows = io->task->unlimited && d == 0;
        code = ncmpi_def_dim(n->file, name, grows ? NC_UNLIMITED : n->set.extent[d], &dims[d]);
    }
    if (code == NC_NOERR)
        code = ncmpi_def_var(n->file, VARIABLE, NC_BYTE, n->set.dims, dims, &n->variable);
    if (code == NC_NOERR)
        code = ncmpi_def_var_fill(n->file, n->variable, 1, NULL);
    if (code == NC_NOERR)
        code = ncmpi_enddef(n->file);
    return pnetcdf_check(io, "define", code);
}

static int pnetcdf_open(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    MPI_Info info = create_info_aligned(io->task), used;
    int code = io->is_writing ? ncmpi_create(io->comm, io->path, NC_CLOBBER | NC_64BIT_DATA,
                                             info, &n->file)
                              : ncmpi_open(io->comm, io->path, NC_NOWRITE, info, &n->file);
    bench_info_free(&info);
    n->is_open = code == NC_NOERR;
    if (pnetcdf_check(io, "open", code) != 0)
        return -1;
    if (io->is_writing && pnetcdf_define(io, n) != 0)
        return -1;
    if (ncmpi_inq_file_info(n->file, &used) == NC_NOERR)
        bench_info_store(io, used);
    if (!io->is_writing && pnetcdf_check(io, "find variable",
                                         ncmpi_inq_varid(n->file, VARIABLE, &n->variable)) != 0)
        return -1;
    if (bench_is_collective(io->task))
        return 0;
    code = ncmpi_begin_indep_data(n->file);
    n->is_independent = code == NC_NOERR;
    return pnetcdf_check(io, "set mode", code);
}

static int end_independent(struct bench_io *io, struct pnetcdf *n)
{
    if (!n->is_independent)
        return 0;
    n->is_independent = false;
    return pnetcdf_check(io, "end independent mode", ncmpi_end_indep_data(n->file));
}

static int pnetcdf_close(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    if (!n->is_open)
        return 0;
    n->is_open = false;
    int code = end_independent(io, n);
    code |= pnetcdf_check(io, "close", ncmpi_close(n->file));
    return code ? code : bench_posix_sync_path(io);
}

static int pnetcdf_move_slab(struct bench_io *io, const struct bench_slab *slab)
{
    struct pnetcdf *n = io->state;
    MPI_Offset start[BENCH_DATASET_DIMS], count[BENCH_DATASET_DIMS];
    signed char *data = (signed char *)io->data + slab->mem_offset;
    bool collective = bench_is_collective(io->task);
    int code;
    for (int d = 0; d < n->set.dims; d++) {
        start[d] = slab->start[d];
        count[d] = slab->count[d];
    }
    if (io->is_writing && collective)
        code = ncmpi_put_vara_schar_all(n->file, n->variable, start, count, data);
    else if (io->is_writing)
        code = ncmpi_put_vara_schar(n->file, n->variable, start, count, data);
    else if (collective)
        code = ncmpi_get_vara_schar_all(n->file, n->variable, start, count, data);
    else
        code = ncmpi_get_vara_schar(n->file, n->variable, start, count, data);
    return pnetcdf_check(io, io->is_writing ? "write" : "read", code);
}

static int pnetcdf_transfer(struct bench_io *io)
{
    return bench_move_slabs(io, &((struct pnetcdf *)io->state)->set, pnetcdf_move_slab, NULL);
}

static int pnetcdf_sync(struct bench_io *io)
{
    struct pnetcdf *n = io->state;
    int code = end_independent(io, n);
    return pnetcdf_check(io, "sync", ncmpi_sync(n->file)) | code;
}

const struct bench_backend bench_pnetcdf = {
    .name = "pnetcdf",
    .about = "PnetCDF, one variable of a CDF-5 file",
    .abilities = BENCH_CAN_DATASET,
    .patterns = BENCH_ALL_PATTERNS,
    .may_hang = true,
    .state_bytes = sizeof(struct pnetcdf),
    .unsupported = bench_dataset_unsupported,
    .prepare = pnetcdf_prepare,
    .open = pnetcdf_open,
    .transfer = pnetcdf_transfer,
    .sync = pnetcdf_sync,
    .close = pnetcdf_close,
};
