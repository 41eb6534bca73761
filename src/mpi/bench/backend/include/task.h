/*
 * task.h - what is to be measured, the same on every rank; pure, no MPI
 */
#ifndef BENCH_TASK_H
#define BENCH_TASK_H

#include "pattern.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BENCH_HINTS_MAX = 32,
    BENCH_MOVE_MAX = 1 << 30, /* bytes in one call: counts are ints */
};

enum bench_mode {
    BENCH_ANY_MODE, /* none asked for: collective where there is a choice */
    BENCH_INDEPENDENT,
    BENCH_COLLECTIVE,
};

enum bench_shape {
    BENCH_SHAPE_DEFAULT, /* that of the lattice; else 1d */
    BENCH_SHAPE_1D,
    BENCH_SHAPE_2D,
};

struct bench_hint {
    char *key, *value;
};

struct bench_task {
    struct bench_pattern pattern;
    int hosts; /* that the ranks run on */
    enum bench_mode mode;
    int64_t alignment, chunk; /* 0: none */
    bool unlimited;
    enum bench_shape shape;
    bool fsync;
    bool checksum;     /* lime */
    int64_t job_ranks; /* limefs-job */
    int hints;
    struct bench_hint hint[BENCH_HINTS_MAX];
};

static inline bool bench_is_collective(const struct bench_task *task)
{
    return task->mode != BENCH_INDEPENDENT;
}

#endif
