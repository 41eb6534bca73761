/* pnetcdffile.c - a file by PnetCDF */
#include "pnetcdffile.h"
#include "mpifile.h"
#include "posix.h"

#include <pnetcdf.h>

int bench_pnetcdf_check(struct bench_io *io, const char *action, int result)
{
    return result == NC_NOERR ? 0 : bench_io_fail(io, action, "%s", ncmpi_strerror(result));
}

int bench_pnetcdf_open(struct bench_io *io, MPI_Info info, struct bench_pnetcdf_file *file)
{
    int code = io->writing ? ncmpi_create(io->comm, io->path, NC_CLOBBER | NC_64BIT_DATA, info,
                                          &file->id)
                           : ncmpi_open(io->comm, io->path, NC_NOWRITE, info, &file->id);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    file->is_open = code == NC_NOERR;
    return bench_pnetcdf_check(io, "open", code);
}

int bench_pnetcdf_close(struct bench_io *io, struct bench_pnetcdf_file *file)
{
    if (!file->is_open)
        return 0;
    file->is_open = false;
    int code = bench_pnetcdf_check(io, "close", ncmpi_close(file->id));
    return code ? code : bench_posix_settle(io);
}

void bench_pnetcdf_hints(struct bench_io *io, const struct bench_pnetcdf_file *file)
{
    MPI_Info info;
    if (ncmpi_inq_file_info(file->id, &info) != NC_NOERR)
        return;
    bench_mpifile_hints(io, info);
    MPI_Info_free(&info);
}
