/*
 * mpifile.h - a file by MPI-IO, for the back ends that use it themselves
 */
#ifndef BENCH_MPIFILE_H
#define BENCH_MPIFILE_H

#include "backend.h"

/* By all ranks of `comm`, with the task's hints; what is in effect goes to io->hints. On
 * failure *file is MPI_FILE_NULL. */
int bench_mpifile_open(struct bench_io *, MPI_Comm comm, MPI_File *file);
int bench_mpifile_sync(struct bench_io *, MPI_File file);
int bench_mpifile_close(struct bench_io *, MPI_File *file); /* MPI_FILE_NULL: nothing to do */

/* Keeps these hints; on rank 0, and only once. */
void bench_mpifile_hints(struct bench_io *, MPI_Info);

/* Checks what a transfer has moved: 0, or -1 with an error. */
int bench_mpifile_moved(struct bench_io *, int error, MPI_Status *, MPI_Datatype, int wanted);

#endif
