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

enum {
    LEMON_RANGE_TEXT = 128, /* bytes */
};

/* Any length. False: `text` says why not all of it was moved, without the file's name. */
bool lemon_range_move(const struct lemon_file *, enum lemon_direction, void *data, int64_t n,
                      int64_t offset, char text[LEMON_RANGE_TEXT]);

#endif
