/*
 * ways.h - the ways to write and read particles, a file each
 */
#ifndef BENCH_WAYS_H
#define BENCH_WAYS_H

#include "backend.h"

extern const struct bench_backend bench_way_posix, bench_way_lime, bench_way_ascii,
    bench_way_binary, bench_way_pnetcdf;

#endif
