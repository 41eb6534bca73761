/*
 * bench.h - ways to write and read the same distributed lattice, to be compared
 *
 * Every way puts the same bytes into the file: a 4-dimensional lattice of 576-byte sites, row
 * major, at the start of the file or behind a record header.
 */
#ifndef LEMON_BENCH_H
#define LEMON_BENCH_H

#include <mpi.h>

struct bench {
    MPI_Comm cart;
    int rank, ranks;
    int lattice[4], start[4], sites[4]; /* slowest first */
    int site_bytes;
    long local_bytes, bytes;
    char *data;
    const char *path;
    const char *order; /* "in turn", or "interleaved" in the file */
};

/* interleaved: the ranks split the fastest dimensions, so that their parts alternate. */
void bench_set_up(struct bench *, int extent, int interleaved, const char *path);

/* The same by "L ROUNDS FILE [interleaved]": how many rounds, or 0 after saying how to call it.
 */
int bench_set_up_as(struct bench *, const char *program, int argc, char **argv, int most);

/* Nothing of the file is in memory, if this is root. */
void bench_settle(const struct bench *);

double bench_median(double *values, int n);

/* Each returns 0, or -1 on this rank after saying why. write: the data are on the disk. */
struct bench_way {
    const char *name;
    int (*write)(struct bench *);
    int (*read)(struct bench *);
};

extern const struct bench_way bench_lemon, bench_subarray, bench_gather, bench_posix;

#endif
