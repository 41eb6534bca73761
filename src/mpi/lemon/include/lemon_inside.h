/* lemon_inside.h - functions for other modules of the library; not installed */
#ifndef LEMON_INSIDE_H
#define LEMON_INSIDE_H

#include "lemon.h"

#include <stdbool.h>

/* Collective. Return the lowest code; LEMON_ERR_PARAM if ranks' values differ (n <= 64). */
int lemon_inside_agree(MPI_Comm, int code);
int lemon_inside_agree_on(MPI_Comm, int code, const int64_t *values, int n);

/* Passes a message (with the rank unless MPI_COMM_NULL) to the handler. Returns `code`. */
int lemon_inside_log(MPI_Comm, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* From now on closing a record does not sync, unless the record is to be verified. */
void lemon_inside_defer_sync(LemonWriter *);

/* Waits for the non-blocking calls of all readers and writers of this process, because Open MPI
 * does not sync before that, and calls MPI_File_sync(). */
int lemon_inside_sync(MPI_File);

/* Returns whether the data of a non-blocking call have moved, or the call has failed; local. */
bool lemon_inside_is_transferred(LemonWriter *);

#endif
