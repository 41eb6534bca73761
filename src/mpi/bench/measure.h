/* measure.h - repeat writing and reading with each back end in turn */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "options.h"
#include "world.h"

/* Times of the slowest rank, in total for all outputs (the files of --outputs). */
struct bench_seconds {
    double compute, open, transfer, close, total;
};

struct bench_result {
    int n;                         /* repetitions done */
    struct bench_seconds *seconds; /* of each repetition */
    bool verified; /* BENCH_READ: false if any wrong byte was read; true if nothing was read */
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
    char path[BENCH_PATH_BYTES]; /* path of its first output */
    struct bench_result results[BENCH_OPERATIONS];
    char failure[BENCH_ERROR_BYTES]; /* why it is no longer measured, or "" */
    int64_t file_bytes; /* on rank 0: bytes of its outputs, including the format's overhead */
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
    MPI_Comm writers, readers; /* the ranks of the pattern; they differ with --reorder */
    double unit_seconds;       /* how long compute(1) takes; 0 without --compute */
    char *data;                /* this rank's data */
};

/* Selects the back ends and allocates memory. Returns BENCH_SUCCESS, or BENCH_USAGE or
 * BENCH_FAILED after a message; bench_run_free() must follow in any case. Collective. */
int bench_run_init(struct bench_run *, const struct bench_options *,
                   const struct bench_world *);
void bench_run_free(struct bench_run *);

/* Returns BENCH_SUCCESS, or BENCH_FAILED after messages. Collective. */
int bench_run_measure(struct bench_run *);

/* True if a library still has an open file after an error: MPI_Finalize() may then hang. */
bool bench_is_abandoned(void);

/* Writes the path of output n, from 0: entry->path, and "." and n + 1 if there are several. */
void bench_output_path(const struct bench_run *, const struct bench_entry *, int n,
                       char path[BENCH_PATH_BYTES]);

#endif
