/* lemon_inside.h - functions for other modules of the library; not installed */
#ifndef LEMON_INSIDE_H
#define LEMON_INSIDE_H

#include "lemon.h"

#include <stdbool.h>

/* Collective. Return the lowest code of all ranks. If all codes are LEMON_SUCCESS, but any of
 * the n values (at most 64) differs between ranks, the second returns LEMON_ERR_PARAM. */
int lemon_inside_agree(MPI_Comm, int code);
int lemon_inside_agree_on(MPI_Comm, int code, const int64_t *values, int n);

/* Passes a message to the message handler, with this process's rank unless the communicator is
 * MPI_COMM_NULL. Returns `code`. */
int lemon_inside_log(MPI_Comm, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* From now on closing a record does not sync, unless the record is to be verified. */
void lemon_inside_defer_sync(LemonWriter *);

/* Waits for the non-blocking calls of all readers and writers of this process, because Open
 * MPI's sync fails during such a call. Then returns the code of MPI_File_sync(). Collective. */
int lemon_inside_sync(MPI_File);

/* Returns false while a non-blocking call of the writer is still moving data; local. */
bool lemon_inside_is_transferred(LemonWriter *);

#endif
