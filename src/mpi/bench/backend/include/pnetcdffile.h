/*
 * pnetcdffile.h - a file by PnetCDF; only where that is there
 */
#ifndef BENCH_PNETCDFFILE_H
#define BENCH_PNETCDFFILE_H

#include "backend.h"

#include <stdbool.h>

struct bench_pnetcdf_file {
    int id;
    bool is_open;
};

/* Of the io's direction, by all its ranks, with these hints, which it frees. 0, or -1 with an
 * error. */
int bench_pnetcdf_open(struct bench_io *, MPI_Info, struct bench_pnetcdf_file *);

/* Nothing is done with what is not open. What was written is on the disk then, if that is asked
 * for. */
int bench_pnetcdf_close(struct bench_io *, struct bench_pnetcdf_file *);

/* Keeps the hints that are in effect. */
void bench_pnetcdf_hints(struct bench_io *, const struct bench_pnetcdf_file *);

/* Of what a call has returned: 0, or -1 with an error. */
int bench_pnetcdf_check(struct bench_io *, const char *action, int result);

#endif
