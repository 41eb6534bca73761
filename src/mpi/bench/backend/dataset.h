/*
 * dataset.h - describe the file's data as an array of bytes, for HDF5 and NetCDF; calls no MPI
 *
 * The array's dimensions depend on task->shape and on the pattern. 1d: one dimension. 2d: a row
 * has `transfer` bytes for each rank. By default, a lattice has its 4 dimensions and, as the
 * fifth, the bytes of a site; other patterns are stored as 1d.
 *
 * Requires that bench_dataset_unsupported(task) is NULL. The task must outlive the dataset.
 */
#ifndef BENCH_DATASET_H
#define BENCH_DATASET_H

#include "task.h"

enum {
    BENCH_DATASET_DIMS = BENCH_DIMS + 1,
};

struct bench_dataset {
    const struct bench_pattern *pattern;
    bool lattice; /* the array has the dimensions of a lattice */
    int dims;
    int64_t extent[BENCH_DATASET_DIMS]; /* slowest first */
    int64_t chunk[BENCH_DATASET_DIMS];  /* extents of a chunk, whose product is at most
                                         * task->chunk bytes; all 0: no chunks */
};

/* A part of the array that one call moves. */
struct bench_slab {
    int64_t start[BENCH_DATASET_DIMS], count[BENCH_DATASET_DIMS];
    int64_t mem_offset, bytes; /* in the rank's buffer */
};

void bench_dataset_init(struct bench_dataset *, const struct bench_task *);

/* Returns the reason why task->shape cannot store the pattern, or NULL. */
const char *bench_dataset_unsupported(const struct bench_task *);

/* Returns the number of slabs of the rank that has the most. */
int64_t bench_dataset_rounds(const struct bench_dataset *);

/* Computes slab i of a rank. The slab has 0 bytes if the rank has no slab i. */
void bench_dataset_slab(const struct bench_dataset *, int rank, int64_t i, struct bench_slab *);

/* Returns the extent that the first dimension must have to contain slab i of every rank. */
int64_t bench_dataset_length_for(const struct bench_dataset *, int64_t i);

#endif
