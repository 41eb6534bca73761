/*
 * cache.h - the page cache
 */
#ifndef BENCH_CACHE_H
#define BENCH_CACHE_H

#include "world.h"

/* What bench_cache_drop() can do here: "drop_caches" (all of it) or "posix_fadvise" (the file's
 * pages, on each host that has read or written it). Collective. */
const char *bench_cache_method(const struct bench_world *, bool file_only);

/* Whether the method drops what belongs to other files, too. */
bool bench_cache_is_whole(const char *method);

/* Nothing of the file is in memory, nothing is being written. Collective. */
void bench_cache_drop(const struct bench_world *, const char *method, const char *path);

#endif
