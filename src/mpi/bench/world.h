/* world.h - the ranks of the job and their hosts, errors of any rank, and progress */
#ifndef BENCH_WORLD_H
#define BENCH_WORLD_H

#include <mpi.h>
#include <stdbool.h>

#define BENCH_PROGRAM "lime-bench"

enum { /* exit statuses */
       BENCH_SUCCESS = 0,
       BENCH_FAILED = 1,
       BENCH_USAGE = 2,
};

struct bench_world {
    int rank, ranks; /* in MPI_COMM_WORLD */
    int hosts;
    MPI_Comm host; /* the ranks of this host */
    int host_rank, host_ranks;
};

void bench_world_init(struct bench_world *);
void bench_world_free(struct bench_world *);

/* Prints "lime-bench: text" to stderr on any rank: one line without control characters. */
__attribute__((format(printf, 1, 2))) void bench_log(const char *format, ...);

/* Rank 0 shows progress in a line on stderr, if that is a terminal, after the first seconds.
 * All ranks call bench_progress_start() once. bench_progress_clear() erases the line. */
void bench_progress_start(const struct bench_world *, bool quiet);
__attribute__((format(printf, 1, 2))) void bench_progress(const char *format, ...);
void bench_progress_clear(void);

/* error: this rank's error, or "". Rank 0 prints "lime-bench: path: where: rank N: error" for
 * the lowest rank N with an error. Returns true if no rank has an error. Collective. */
bool bench_world_report(const struct bench_world *, const char *path, const char *where,
                        const char *error);

/* Returns rank 0's value on all ranks. Collective. */
int bench_world_broadcast(int value);

#endif
