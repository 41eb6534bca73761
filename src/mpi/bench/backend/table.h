/*
 * table.h - the back ends, a file each
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include "backend.h"

extern const struct bench_backend bench_posix, bench_mpiio, bench_subarray, bench_alltoallv,
    bench_lime, bench_gather, bench_hdf5, bench_netcdf4, bench_pnetcdf, bench_limefs,
    bench_limefs_job;

/* Of the libraries, into a text that lives on. */
const char *bench_hdf5_version(void);
const char *bench_netcdf4_version(void);
const char *bench_pnetcdf_version(void);

#endif
