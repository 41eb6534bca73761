/* options.h - the command line of lime-bench */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "backend.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    BENCH_BACKENDS_MAX = 16,
    BENCH_REPETITIONS_MAX = 1000,
    BENCH_OUTPUTS_MAX = 1000,
    BENCH_REASON_BYTES = 256,
};

struct bench_options {
    bool help, version, list;
    char *path;

    const struct bench_backend *backends[BENCH_BACKENDS_MAX];
    int backend_count;

    int64_t size, block, transfer, segments, site_bytes; /* 0: not given */
    int64_t lattice[BENCH_DIMS], grid[BENCH_DIMS];       /* all 0: not given */
    bool independent, collective;

    bool writes, reads, cold, cold_file, reorder, keep, quiet;
    int64_t repetitions, outputs, seed;
    double compute;   /* seconds of computing before each output */
    const char *json; /* NULL: none; "-": standard output */
    bool force;       /* replace an existing JSON file */

    struct bench_task task; /* its pattern is complete after bench_options_resolve() */
};

/* Returns false and a reason if an option is wrong; false and "" unless there is one FILE. */
bool bench_options_parse(int argc, char **argv, struct bench_options *,
                         char reason[BENCH_REASON_BYTES]);

/* Completes `task` for this number of ranks. Returns false and a reason if it cannot. */
bool bench_options_resolve(struct bench_options *, int ranks, char reason[BENCH_REASON_BYTES]);

/* Prints the lines "usage: ..." or, if `all`, the whole text of --help. */
void bench_options_usage(bool all, FILE *to);

#endif
