/*
 * root.h - particles through rank 0: of all ranks to it, and from it to those that they belong
 * to
 *
 * An error on rank 0 does not end the exchange: the others wait for it.
 */
#ifndef BENCH_ROOT_H
#define BENCH_ROOT_H

#include "cells.h"

enum {
    BENCH_ROOT_CHUNK = 1 << 16, /* particles: what is exchanged at once */
};

struct bench_root {
    int fd;     /* rank 0's; -1 */
    int64_t at; /* ... that was reached in the file */
    char *chunk, *sorted;
    char *text; /* the way's own: text_bytes */
    int64_t begin, end, left;
};

/* On rank 0, takes n particles. Returns -1 after an error. */
typedef int bench_root_take(struct bench_io *, struct bench_root *, const char *particles,
                            int64_t n);

/* On rank 0, gives up to BENCH_ROOT_CHUNK particles; 0 at the end, -1 after an error. */
typedef int64_t bench_root_give(struct bench_io *, struct bench_root *, char *particles);

/* All ranks' particles, rank after rank. Collective; 0 or -1. */
int bench_root_collect(struct bench_io *, bench_root_take *);

/* To the ranks in whose boxes they are. Collective; 0 or -1. */
int bench_root_deal(struct bench_io *, bench_root_give *);

/* What back ends have: the file is open on rank 0 only. io->state is a struct bench_root. */
int bench_root_prepare(struct bench_io *, size_t text_bytes);
int bench_root_open(struct bench_io *);
int bench_root_sync(struct bench_io *);
int bench_root_close(struct bench_io *);
void bench_root_release(struct bench_io *);

#endif
