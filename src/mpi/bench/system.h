/* system.h - describe the machine and its libraries, and drop its page cache */
#ifndef BENCH_SYSTEM_H
#define BENCH_SYSTEM_H

#include "world.h"

#include <jansson.h>
#include <stdint.h>

struct bench_system {
    char mpi[64];    /* "Open MPI 4.1.4" */
    char mpi_io[32]; /* "ompio", "romio321", ..., or "unknown" */
    char host[256], kernel[256];
    long cpus;
    int64_t memory_bytes;
    char file_system[64];               /* its type, as mount(8) shows it */
    int64_t block_bytes;                /* 0: unknown (also in the next two) */
    int64_t stripe_bytes, stripe_count; /* as MPI-IO reports them */
};

/* Describes the system, on rank 0 only. `path` is absolute. Creates and removes PATH.probe. */
void bench_system_init(struct bench_system *, const char *path);

/* Returns the new JSON object "system". */
json_t *bench_system_json(const struct bench_system *);

/* Returns what bench_cache_drop() can do on all hosts: "drop_caches" drops the whole cache,
 * "posix_fadvise" only a file's pages. If file_only, returns the latter. Collective. */
const char *bench_cache_method(const struct bench_world *, bool file_only);

/* Returns true if the method also drops pages of other files. */
bool bench_cache_is_whole(const char *method);

/* Writes back and drops the cached pages of the file, or all, on each host. Collective. */
void bench_cache_drop(const struct bench_world *, const char *method, const char *path);

#endif
