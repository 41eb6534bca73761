/* lemon_inside.h - functions for other modules of the library; not installed */
#ifndef LEMON_INSIDE_H
#define LEMON_INSIDE_H

#include "lemon.h"

#include <stdbool.h>

/* Collective. Return the lowest code of all ranks. If all codes are LEMON_SUCCESS, the second
 * returns LEMON_ERR_PARAM if any of the n values (at most 64) differs between ranks. */
int lemon_inside_agree(MPI_Comm, int code);
int lemon_inside_agree_on(MPI_Comm, int code, const int64_t *values, int n);

/* Passes a message (with the rank unless MPI_COMM_NULL) to the handler. Returns `code`. */
int lemon_inside_log(MPI_Comm, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* From now on closing a record does not sync, unless the record is to be verified. */
void lemon_inside_defer_sync(LemonWriter *);

/* Waits for the non-blocking calls of all readers and writers of this process (before that
 * Open MPI's sync fails), then calls MPI_File_sync() and returns its code. Collective. */
int lemon_inside_sync(MPI_File);

/* Returns whether the data of a non-blocking call have moved, or the call has failed; local. */
bool lemon_inside_is_transferred(LemonWriter *);

#endif
