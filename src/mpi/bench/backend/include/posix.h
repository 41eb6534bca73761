/*
 * posix.h - pieces of a file by POSIX calls
 */
#ifndef BENCH_POSIX_H
#define BENCH_POSIX_H

#include "backend.h"

#include <stdint.h>
#include <sys/types.h>

/* Of the io's direction; a descriptor, or -1 with an error. */
int bench_posix_open(struct bench_io *, const char *path);

/* Up to n bytes, at `offset` of the file: how many, 0 at the end of what is read, or -1 with an
 * error. */
int64_t bench_posix_some(struct bench_io *, int fd, void *data, int64_t n, int64_t offset);

/* All n bytes, at `offset` of the file: 0, or -1 with an error. */
int bench_posix_move(struct bench_io *, int fd, void *data, int64_t n, int64_t offset);

/* All pieces of this rank. */
int bench_posix_pieces(struct bench_io *, int fd);

/* 0, or -1 with an error; nothing is done with -1. */
int bench_posix_sync(struct bench_io *, int fd);
int bench_posix_close(struct bench_io *, int fd);

/* What a library has written when it closed the file is on the disk as well, if that is asked
 * for: by rank 0. */
int bench_posix_settle(struct bench_io *);

/* ---- back ends that open the file on each rank, and whose state is nothing but that ---- */

int bench_posix_state_open(struct bench_io *);
int bench_posix_state_sync(struct bench_io *);
int bench_posix_state_close(struct bench_io *);

/* The descriptor; -1: none. */
int bench_posix_state_fd(const struct bench_io *);

#endif
