/* backend_netcdf4.c - parallel NetCDF-4: one variable of bytes in an HDF5 file */
#include "backend_common.h"

#include <netcdf.h>
#include <netcdf_meta.h>
#include <netcdf_par.h>
#include <stdio.h>

#if NC_VERSION_MAJOR > 4 || (NC_VERSION_MAJOR == 4 && NC_VERSION_MINOR >= 9)
#define HAVE_ALIGNMENT 1
#else
#define HAVE_ALIGNMENT 0
#endif

#define VARIABLE "data"

struct netcdf {
    struct bench_dataset set;
    int file, variable;
    bool is_open;
};

const char *bench_netcdf4_version(void)
{
    return NC_VERSION;
}

static const char *netcdf4_unsupported(const struct bench_task *task)
{
    if (task->alignment && !HAVE_ALIGNMENT)
        return "--alignment: this NetCDF has no nc_set_alignment (4.9 has)";
    if (task->unlimited && !task->chunk)
        return "--unlimited: NetCDF-4 needs --chunk for it";
    if (task->unlimited && !bench_is_collective(task))
        return "--unlimited: NetCDF-4 extends a variable in collective calls only";
    return bench_dataset_unsupported(task);
}

static int netcdf4_check(struct bench_io *io, const char *action, int result)
{
    return result == NC_NOERR ? 0 : bench_io_fail(io, action, "%s", nc_strerror(result));
}

static int netcdf4_prepare(struct bench_io *io)
{
    bench_dataset_init(&((struct netcdf *)io->state)->set, io->task);
#if HAVE_ALIGNMENT
    int alignment = io->task->alignment ? (int)io->task->alignment : 1;
    return netcdf4_check(io, "set alignment", nc_set_alignment(alignment, alignment));
#else
    return 0;
#endif
}

static int netcdf4_define(struct bench_io *io, struct netcdf *n)
{
    int dims[BENCH_DATASET_DIMS], code = NC_NOERR, old;
    size_t chunk[BENCH_DATASET_DIMS];
    for (int d = 0; d < n->set.dims && code == NC_NOERR; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%d", d);
        bool grows = io->task->unlimited && d == 0;
        code = nc_def_dim(n->file, name, grows ? NC_UNLIMITED : (size_t)n->set.extent[d],
                          &dims[d]);
        chunk[d] = (size_t)n->set.chunk[d];
    }
    if (code == NC_NOERR)
        code = nc_set_fill(n->file, NC_NOFILL, &old);
    if (code == NC_NOERR)
        code = nc_def_var(n->file, VARIABLE, NC_BYTE, n->set.dims, dims, &n->variable);
    if (code == NC_NOERR)
        code = nc_def_var_fill(n->file, n->variable, 1, NULL);
    if (code == NC_NOERR)
        code = nc_def_var_chunking(n->file, n->variable,
                                   io->task->chunk ? NC_CHUNKED : NC_CONTIGUOUS, chunk);
    if (code == NC_NOERR)
        code = nc_enddef(n->file);
    return netcdf4_check(io, "define", code);
}

static int netcdf4_open(struct bench_io *io)
{
    struct netcdf *n = io->state;
    MPI_Info info = bench_info_create(io->task);
    int code;
    if (io->is_writing)
        code = nc_create_par(io->path, NC_NETCDF4 | NC_CLOBBER, io->comm, info, &n->file);
    else
        code = nc_open_par(io->path, NC_NOWRITE, io->comm, info, &n->file);
    bench_info_free(&info);
    n->is_open = code == NC_NOERR;
    if (netcdf4_check(io, "open", code) != 0)
        return -1;
    if (io->is_writing && netcdf4_define(io, n) != 0)
        return -1;
    if (!io->is_writing &&
        netcdf4_check(io, "find variable", nc_inq_varid(n->file, VARIABLE, &n->variable)) != 0)
        return -1;
    return netcdf4_check(
        io, "set mode",
        nc_var_par_access(n->file, n->variable,
                          bench_is_collective(io->task) ? NC_COLLECTIVE : NC_INDEPENDENT));
}

static int netcdf4_close(struct bench_io *io)
{
    struct netcdf *n = io->state;
    if (!n->is_open)
        return 0;
    n->is_open = false;
    if (netcdf4_check(io, "close", nc_close(n->file)) != 0)
        return -1;
    return bench_posix_sync_path(io);
}

static int netcdf4_move_slab(struct bench_io *io, const struct bench_slab *slab)
{
    struct netcdf *n = io->state;
    size_t start[BENCH_DATASET_DIMS], count[BENCH_DATASET_DIMS];
    signed char *data = (signed char *)io->data + slab->mem_offset;
    for (int d = 0; d < n->set.dims; d++) {
        start[d] = (size_t)slab->start[d];
        count[d] = (size_t)slab->count[d];
    }
    if (io->is_writing)
        return netcdf4_check(io, "write",
                             nc_put_vara_schar(n->file, n->variable, start, count, data));
    return netcdf4_check(io, "read",
                         nc_get_vara_schar(n->file, n->variable, start, count, data));
}

static int netcdf4_transfer(struct bench_io *io)
{
    return bench_move_slabs(io, &((struct netcdf *)io->state)->set, netcdf4_move_slab, NULL);
}

static int netcdf4_sync(struct bench_io *io)
{
    return netcdf4_check(io, "sync", nc_sync(((struct netcdf *)io->state)->file));
}

const struct bench_backend bench_netcdf4 = {
    .name = "netcdf4",
    .about = "NetCDF-4, one variable",
    .abilities = BENCH_CAN_DATASET | BENCH_CAN_CHUNK,
    .patterns = BENCH_ALL_PATTERNS,
    .may_hang = true,
    .state_bytes = sizeof(struct netcdf),
    .unsupported = netcdf4_unsupported,
    .prepare = netcdf4_prepare,
    .open = netcdf4_open,
    .transfer = netcdf4_transfer,
    .sync = netcdf4_sync,
    .close = netcdf4_close,
};
