/* io.c - errors of one rank, and what all ranks know of them */
#include "backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int bench_io_fail(struct bench_io *io, const char *action, const char *format, ...)
{
    if (io->error[0])
        return -1;
    int n = snprintf(io->error, sizeof io->error, "%s: ", action);
    if (n < (int)sizeof io->error) {
        va_list args;
        va_start(args, format);
        vsnprintf(io->error + n, sizeof io->error - (size_t)n, format, args);
        va_end(args);
    }
    return -1;
}

int bench_io_errno(struct bench_io *io, const char *action)
{
    return bench_io_fail(io, action, "%s", strerror(errno));
}

int bench_io_mpi(struct bench_io *io, const char *action, int error)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (error == MPI_SUCCESS)
        return 0;
    MPI_Error_string(error, text, &length);
    return bench_io_fail(io, action, "%s", text);
}

bool bench_io_all(struct bench_io *io)
{
    int good = io->error[0] == '\0';
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, io->comm);
    return good;
}
