/*
 * backend_common.h - functions that back ends share: report errors, use a file by POSIX calls
 * or MPI-IO, and move datasets slab by slab
 *
 * "Move" means write if io->is_writing, otherwise read. Functions of type int return 0, or -1
 * after writing a message to io->error.
 */
#ifndef BENCH_BACKEND_COMMON_H
#define BENCH_BACKEND_COMMON_H

#include "backend.h"
#include "dataset.h"

/* Store "action: reason" in io->error, unless it has an error already, and return -1. But if
 * error is MPI_SUCCESS, bench_io_fail_mpi() only returns 0. */
__attribute__((format(printf, 3, 4))) int bench_io_fail(struct bench_io *, const char *action,
                                                        const char *format, ...);
int bench_io_fail_errno(struct bench_io *, const char *action); /* reason: errno */
int bench_io_fail_mpi(struct bench_io *, const char *action, int error);

/* ---- io->fd ---- */

int bench_posix_open(struct bench_io *); /* opens io->path */

/* Moves all n bytes at `offset` of the file. */
int bench_posix_move(struct bench_io *, void *data, int64_t n, int64_t offset);

/* Moves all pieces of this rank. */
int bench_posix_pieces(struct bench_io *);

/* Both do nothing if io->fd is -1. */
int bench_posix_sync(struct bench_io *);
int bench_posix_close(struct bench_io *);

/* For a library that still writes while it closes the file. Call this after the close: if data
 * were written and fsync is requested, rank 0 opens io->path again and syncs it. */
int bench_posix_sync_path(struct bench_io *);

/* ---- io->file ---- */

/* Opens the file on all ranks of `comm` with the task's hints. Sets io->hints. */
int bench_mpifile_open(struct bench_io *, MPI_Comm comm);
int bench_mpifile_sync(struct bench_io *);
int bench_mpifile_close(struct bench_io *);

/* Checks an MPI-IO call's results: it must have moved `expected` items of the data type. */
int bench_mpifile_check(struct bench_io *, int error, MPI_Status *, MPI_Datatype, int expected);

/* Returns the task's hints, or MPI_INFO_NULL. The caller frees them with bench_info_free(). */
MPI_Info bench_info_create(const struct bench_task *);
void bench_info_free(MPI_Info *);

/* On rank 0, copies the hints in info to io->hints if io->hints is NULL. On all ranks, frees
 * info, which must not be MPI_INFO_NULL. */
void bench_info_store(struct bench_io *, MPI_Info);

/* ---- datasets ---- */

typedef int bench_move_slab(struct bench_io *, const struct bench_slab *);

/* Calls `move` for all slabs of this rank. In a collective task, all ranks make the same number
 * of calls, some with empty slabs, and go on after an error. In an independent task, a rank
 * stops at its first error. grow: NULL, or called before each write with the slab's number. */
int bench_move_slabs(struct bench_io *, const struct bench_dataset *, bench_move_slab *move,
                     int (*grow)(struct bench_io *, int64_t round));

/* ---- the back ends of backends.c ---- */

extern const struct bench_backend bench_mpiio, bench_subarray, bench_lime, bench_gather,
    bench_hdf5, bench_netcdf4, bench_pnetcdf, bench_limefs, bench_limefs_job;

/* Return the versions of the libraries, as static strings. */
const char *bench_hdf5_version(void);
const char *bench_netcdf4_version(void);
const char *bench_pnetcdf_version(void);

#endif
