/* system.h - describe the machine and its libraries, and drop its page cache */
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
    int64_t block_bytes;                /* 0: unknown, as are those below */
    int64_t stripe_bytes, stripe_count; /* as MPI-IO reports them */
};

/* Describes the system on rank 0. `path` is absolute; creates and removes PATH.probe. */
void bench_system_init(struct bench_system *, const char *path);

/* Returns the new JSON object "system". */
json_t *bench_system_json(const struct bench_system *);

/* Returns what bench_cache_drop() can do here: "drop_caches" (the whole cache; not if
 * file_only) or "posix_fadvise" (only the file's pages, on each host). Collective. */
const char *bench_cache_method(const struct bench_world *, bool file_only);

/* True if the method also drops pages of other files. */
bool bench_cache_is_whole(const char *method);

/* Writes back and drops the cached pages of the file, or all pages. Collective. */
void bench_cache_drop(const struct bench_world *, const char *method, const char *path);

#endif
