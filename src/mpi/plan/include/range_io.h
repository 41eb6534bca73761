/* range_io.h - read or write one contiguous range of a file, blocking, by this rank alone */
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
    MPI_File *mpi;    /* owned by the caller */
    int direct_fd;    /* descriptor for O_DIRECT reads; -1: none. The caller closes it */
    int writeback_fd; /* descriptor to start write-back; -1: none. The caller closes it */
};

enum {
    LEMON_RANGE_TEXT_MAX = 128, /* bytes */
};

/* Reads or writes n bytes, any number. If fewer bytes were moved, returns false and fills
 * `text` with a message without the file's name. */
bool lemon_range_move(const struct lemon_file *, enum lemon_direction, void *data, int64_t n,
                      int64_t offset, char text[LEMON_RANGE_TEXT_MAX]);

#endif
