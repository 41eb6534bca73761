/* task.h - what to measure: the pattern and the options for back ends, the same on each rank */
#ifndef BENCH_TASK_H
#define BENCH_TASK_H

#include "pattern.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BENCH_HINTS_MAX = 32,
    BENCH_MOVE_MAX = 1 << 30, /* maximum bytes in one call, whose count is an int */
};

enum bench_mode {
    BENCH_ANY_MODE, /* not given: collective if the back end can do both */
    BENCH_INDEPENDENT,
    BENCH_COLLECTIVE,
};

enum bench_shape {
    BENCH_SHAPE_DEFAULT, /* the lattice's shape, 1d for other patterns */
    BENCH_SHAPE_1D,
    BENCH_SHAPE_2D,
};

struct bench_hint {
    char *key, *value; /* pointers into argv */
};

struct bench_task {
    struct bench_pattern pattern;
    int hosts; /* number of hosts on which the ranks run */
    enum bench_mode mode;
    int64_t alignment, chunk; /* bytes; 0: none */
    bool unlimited;
    enum bench_shape shape;
    bool fsync;
    bool checksum;     /* for the back end lime */
    int64_t job_ranks; /* for limefs-job: ranks of the mount's job */
    int hints;
    struct bench_hint hint[BENCH_HINTS_MAX];
};

static inline bool bench_is_collective(const struct bench_task *task)
{
    return task->mode != BENCH_INDEPENDENT;
}

#endif
