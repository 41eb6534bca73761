/* measure.h - repeat writing and reading with each back end in turn */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "options.h"
#include "world.h"

/* Seconds of the slowest rank in each phase, added up for all outputs (files of --outputs). */
struct bench_seconds {
    double compute, open, transfer, close, total;
};

struct bench_result {
    int n;                         /* repetitions done */
    struct bench_seconds *seconds; /* of each repetition */
    bool verified;                 /* only for BENCH_READ: no wrong byte was read so far */
    json_t *hints; /* the MPI-IO hints in effect; NULL if the back end does not use MPI-IO */
};

enum bench_operation {
    BENCH_WRITE,
    BENCH_READ,
    BENCH_OPERATIONS,
};

/* One measured back end. */
struct bench_entry {
    const struct bench_backend *backend;
    char path[BENCH_PATH_BYTES]; /* of its output; see bench_output_path() for several */
    struct bench_result results[BENCH_OPERATIONS];
    char failure[BENCH_ERROR_BYTES]; /* why the back end is no longer measured, or "" */
    int64_t file_bytes; /* on rank 0: length of its outputs, with all that the format adds */
};

struct bench_run {
    const struct bench_options *options;
    const struct bench_world *world;
    int entry_count;
    struct bench_entry entry[BENCH_BACKENDS_MAX];
    int skipped_count;
    struct {
        const struct bench_backend *backend;
        char reason[BENCH_REASON_BYTES];
    } skipped[BENCH_BACKENDS_MAX];
    int64_t bytes;             /* bytes of data in all outputs */
    const char *cache;         /* bench_cache_method(), or "none" */
    MPI_Comm writers, readers; /* with the pattern's rank numbers; --reorder shifts readers */
    double unit_seconds;       /* seconds of one unit of computing; 0 without --compute */
    char *data;                /* this rank's data */
};

/* Selects the back ends and allocates memory. Returns BENCH_SUCCESS, or BENCH_USAGE or
 * BENCH_FAILED after a message; bench_run_free() must follow in any case. Collective. */
int bench_run_init(struct bench_run *, const struct bench_options *,
                   const struct bench_world *);
void bench_run_free(struct bench_run *);

/* Runs all repetitions. Returns BENCH_SUCCESS, or BENCH_FAILED after messages. Collective. */
int bench_run_measure(struct bench_run *);

/* Returns true if a library still has an open file after an error: MPI_Finalize() can hang. */
bool bench_is_abandoned(void);

/* Sets path to the path of output n, counted from 0. It is entry->path, followed by "." and n +
 * 1 if the run has several outputs. */
void bench_output_path(const struct bench_run *, const struct bench_entry *, int n,
                       char path[BENCH_PATH_BYTES]);

#endif
