/*
 * range.h - one contiguous range of a file, between memory and file, waiting for it; this rank
 * alone.
 */
#ifndef LEMON_RANGE_H
#define LEMON_RANGE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lemon_direction {
    LEMON_READ,
    LEMON_WRITE,
};

struct lemon_file {
    MPI_File *mpi; /* its giver's */
    int direct_fd; /* the file once more, for direct reads; -1: none. Its giver closes it */
    int start_fd;  /* likewise, to start the disk on what was written */
};

/* What went wrong. */
struct lemon_range_fault {
    enum lemon_direction direction;
    int64_t at;    /* in the file */
    int moved, of; /* bytes */
    int error;     /* of MPI, or MPI_SUCCESS */
};

/* Any length. False: *fault says why not all of it was moved. */
bool lemon_range_move(const struct lemon_file *, enum lemon_direction, void *data, int64_t n,
                      int64_t offset, struct lemon_range_fault *fault);

/* In words, without the file's name. */
void lemon_range_explain(const struct lemon_range_fault *, char *text, size_t cap);

#endif
