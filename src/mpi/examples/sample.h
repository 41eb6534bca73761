/* sample.h - functions of the sample programs: open a file, and end the program on an error */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <lemon.h>
#include <mpi.h>
#include <stdio.h>

/* Aborts the program if a Lemon call returned an error. The code is the same on all ranks. */
static inline void sample_check(int code, char const *call)
{
    if (code == LEMON_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", call, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Creates a new file. Aborts the program on an error, also if a file of this name exists. */
static inline void sample_open_for_writing(MPI_Comm comm, char const *name, MPI_File *fp)
{
    int mode = MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL;
    int reason, err = MPI_File_open(comm, name, mode, MPI_INFO_NULL, fp);
    if (err == MPI_SUCCESS)
        return;
    MPI_Error_class(err, &reason);
    if (reason == MPI_ERR_FILE_EXISTS)
        fprintf(stderr, "%s: exists already; remove it\n", name);
    sample_check(LEMON_ERR_WRITE, name);
}

static inline void sample_open_for_reading(MPI_Comm comm, char const *name, MPI_File *fp)
{
    if (MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, fp) != MPI_SUCCESS)
        sample_check(LEMON_ERR_READ, name);
}

#endif
