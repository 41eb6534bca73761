/*
 * backend_common.h - functions that back ends share: errors of an io, its file with POSIX calls
 * or MPI-IO, and datasets moved slab by slab
 *
 * Functions return 0, or -1 after writing a message to io->error.
 */
#ifndef BENCH_BACKEND_COMMON_H
#define BENCH_BACKEND_COMMON_H

#include "backend.h"
#include "dataset.h"

/* Stores "action: reason" unless there is an error already. All return -1 on an error. */
__attribute__((format(printf, 3, 4))) int bench_io_fail(struct bench_io *, const char *action,
                                                        const char *format, ...);
int bench_io_fail_errno(struct bench_io *, const char *action);          /* reason: errno */
int bench_io_fail_mpi(struct bench_io *, const char *action, int error); /* 0: no error */

/* ---- io->fd ---- */

int bench_posix_open(struct bench_io *); /* opens io->path */

/* Moves all n bytes at `offset` of the file. */
int bench_posix_move(struct bench_io *, void *data, int64_t n, int64_t offset);

/* Moves all pieces of this rank. */
int bench_posix_pieces(struct bench_io *);

/* Both do nothing without a descriptor. */
int bench_posix_sync(struct bench_io *);
int bench_posix_close(struct bench_io *);

/* If fsync is requested, rank 0 syncs the file by its path: a library writes to it on close. */
int bench_posix_sync_path(struct bench_io *);

/* ---- io->file ---- */

/* Opens the file on all ranks of `comm` with the task's hints, and stores those in effect. */
int bench_mpifile_open(struct bench_io *, MPI_Comm comm);
int bench_mpifile_sync(struct bench_io *);
int bench_mpifile_close(struct bench_io *);

/* Checks that a transfer has moved `expected` units. */
int bench_mpifile_check(struct bench_io *, int error, MPI_Status *, MPI_Datatype, int expected);

/* Returns the task's hints, or MPI_INFO_NULL if it has none. The caller frees them with
 * bench_info_free(). */
MPI_Info bench_info_create(const struct bench_task *);
void bench_info_free(MPI_Info *);

/* Frees info, which must not be MPI_INFO_NULL. Before, rank 0 copies the hints to io->hints if
 * that is still NULL. */
void bench_info_store(struct bench_io *, MPI_Info);

/* ---- datasets ---- */

typedef int bench_move_slab(struct bench_io *, const struct bench_slab *);

/* Moves all slabs of this rank. In collective tasks all ranks make the same number of calls,
 * some with empty slabs, also after an error; in others a rank stops. Calls `grow`, which may
 * be NULL, before slab number `round` is written. */
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
