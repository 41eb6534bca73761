/*
 * system.h - the machine and the libraries that are measured, and its page cache
 */
#ifndef BENCH_SYSTEM_H
#define BENCH_SYSTEM_H

#include "world.h"

#include <jansson.h>
#include <stdint.h>

struct bench_system {
    char mpi[64];    /* "Open MPI 4.1.4" */
    char mpi_io[32]; /* "ompio", "romio321", ...; "unknown" */
    char host[256], kernel[256];
    long cpus;
    int64_t memory_bytes;
    char file_system[64];               /* its type, as mount(8) shows it */
    int64_t block_bytes;                /* 0: unknown, as those below */
    int64_t stripe_bytes, stripe_count; /* by what MPI-IO tells */
};

/* On rank 0, for a file of that absolute path: a file with its name and ".probe" is made and
 * removed again. */
void bench_system_set(struct bench_system *, const char *path);

/* The JSON object "system". */
json_t *bench_system_json(const struct bench_system *);

/* What bench_cache_drop() can do here: "drop_caches" (all of it) or "posix_fadvise" (the file's
 * pages, on each host that has read or written it). Collective. */
const char *bench_cache_method(const struct bench_world *, bool file_only);

/* Whether the method drops what belongs to other files, too. */
bool bench_cache_is_whole(const char *method);

/* Nothing of the file is in memory, nothing is being written. Collective. */
void bench_cache_drop(const struct bench_world *, const char *method, const char *path);

#endif
