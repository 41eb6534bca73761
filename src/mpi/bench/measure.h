/*
 * measure.h - repetitions of writing and reading, by one back end after another
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "options.h"
#include "world.h"

/* Each time is that of the slowest rank, for all outputs together. */
struct bench_seconds {
    double compute, open, transfer, close, total;
};

struct bench_result {
    int n; /* repetitions that are done */
    struct bench_seconds *seconds;
    bool verified; /* reading: every byte was right, in each repetition */
    json_t *hints; /* in effect; NULL where MPI-IO is not used */
};

enum bench_operation {
    BENCH_WRITE,
    BENCH_READ,
    BENCH_OPERATIONS,
};

/* A back end that is measured. */
struct bench_entry {
    const struct bench_backend *backend;
    char path[BENCH_PATH_BYTES]; /* of its first output */
    struct bench_result results[BENCH_OPERATIONS];
    char failure[BENCH_ERROR_BYTES]; /* why it is not measured any more; "" otherwise */
    int64_t file_bytes;              /* on rank 0: of its outputs, with what a format adds */
};

struct bench_run {
    const struct bench_options *options;
    const struct bench_world *world;
    int entries;
    struct bench_entry entry[BENCH_BACKENDS_MAX];
    int skips;
    struct {
        const struct bench_backend *backend;
        char reason[BENCH_REASON_BYTES];
    } skipped[BENCH_BACKENDS_MAX];
    int64_t bytes;             /* of a file's data, times the outputs */
    const char *cache;         /* what is done to the page cache: "drop_caches", ... */
    MPI_Comm writers, readers; /* the ranks of the pattern; not the same with --reorder */
    double unit;               /* seconds of a unit of computing, if there is any */
    char *data;                /* this rank's */
};

/* Chooses what is measured; BENCH_GOOD, or BENCH_USAGE after a message. Collective. */
int bench_run_set(struct bench_run *, const struct bench_options *, const struct bench_world *);
void bench_run_free(struct bench_run *);

/* BENCH_GOOD, or BENCH_FAILED after messages. Collective. */
int bench_run_measure(struct bench_run *);

/* Whether a library was left with an open file, so that MPI_Finalize() may wait for ever. */
bool bench_is_abandoned(void);

/* Output n of an entry, from 0: its path, with n + 1 appended where there are several. */
void bench_output_path(const struct bench_run *, const struct bench_entry *, int n,
                       char path[BENCH_PATH_BYTES]);

#endif
