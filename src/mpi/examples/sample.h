/*
 * sample.h - what the sample programs share: a file opened, and an end where something fails
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <lemon.h>
#include <mpi.h>
#include <stdio.h>

/* Ends the program if a call of Lemon gave another code than LEMON_SUCCESS. The code is the
 * same on all ranks. */
static inline void sample_check(int code, char const *call)
{
    if (code == LEMON_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", call, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* A new file, or an old one made empty. */
static inline void sample_open_for_writing(MPI_Comm comm, char const *name, MPI_File *fp)
{
    if (MPI_File_open(comm, name, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, fp) !=
            MPI_SUCCESS ||
        MPI_File_set_size(*fp, 0) != MPI_SUCCESS)
        sample_check(LEMON_ERR_WRITE, name);
}

static inline void sample_open_for_reading(MPI_Comm comm, char const *name, MPI_File *fp)
{
    if (MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, fp) != MPI_SUCCESS)
        sample_check(LEMON_ERR_READ, name);
}

#endif
