/*
 * dataset.h - describe the file's data as an array of bytes, for HDF5 and NetCDF; calls no MPI
 *
 * 1d: all bytes. 2d: each row has one transfer of each rank, as in a file of interleaved
 * pieces. A lattice has its 4 dimensions and, as the fifth, the bytes of a site.
 */
#ifndef BENCH_DATASET_H
#define BENCH_DATASET_H

#include "task.h"

enum {
    BENCH_DATASET_DIMS = BENCH_DIMS + 1,
};

struct bench_dataset {
    const struct bench_pattern *pattern;
    bool lattice; /* the array has the shape of the lattice */
    int dims;
    int64_t extent[BENCH_DATASET_DIMS]; /* slowest first */
    int64_t chunk[BENCH_DATASET_DIMS];  /* at most task->chunk bytes; 0: none */
};

/* A part of the array that one call moves. */
struct bench_slab {
    int64_t start[BENCH_DATASET_DIMS], count[BENCH_DATASET_DIMS];
    int64_t mem_offset, bytes; /* in the rank's buffer */
};

void bench_dataset_init(struct bench_dataset *, const struct bench_task *);

/* Returns why the pattern has no array of this shape, or NULL. */
const char *bench_dataset_unsupported(const struct bench_task *);

/* Returns the largest number of slabs of any rank; gets slab i of a rank, which is empty if the
 * rank has fewer. */
int64_t bench_dataset_rounds(const struct bench_dataset *);
void bench_dataset_slab(const struct bench_dataset *, int rank, int64_t i, struct bench_slab *);

/* Returns how long the first dimension must be for slab i of every rank. */
int64_t bench_dataset_length_for(const struct bench_dataset *, int64_t i);

#endif
