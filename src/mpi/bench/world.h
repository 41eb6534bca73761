/*
 * world.h - all ranks: who they are, and one message for what any of them has met
 */
#ifndef BENCH_WORLD_H
#define BENCH_WORLD_H

#include <mpi.h>
#include <stdbool.h>

#define BENCH_PROGRAM "lime-bench"

enum { /* exit statuses */
       BENCH_GOOD = 0,
       BENCH_FAILED = 1,
       BENCH_USAGE = 2,
};

struct bench_world {
    int rank, ranks; /* of MPI_COMM_WORLD */
    int hosts;
    MPI_Comm host; /* the ranks of this host */
    int host_rank, host_ranks;
};

void bench_world_set(struct bench_world *);
void bench_world_free(struct bench_world *);

/* "lime-bench: text" on stderr: one line, with nothing in it that steers a terminal. By the
 * rank that calls. */
__attribute__((format(printf, 1, 2))) void bench_say(const char *format, ...);

/* A line on stderr that says what goes on: on a terminal, and not in the first seconds.
 * bench_progress_start() is called once, by all ranks. */
void bench_progress_start(const struct bench_world *, bool quiet);
__attribute__((format(printf, 1, 2))) void bench_progress(const char *format, ...);
void bench_progress_clear(void);

/* Collective. Rank 0 says what the lowest rank with an error has met: "lime-bench: path: where:
 * rank N: error". "" means no error. Returns whether no rank has an
 * error. */
bool bench_world_report(const struct bench_world *, const char *path, const char *where,
                        const char *error);

/* The same value on all ranks: rank 0's. */
int bench_world_agree(int value);

#endif
