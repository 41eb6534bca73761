/*
 * lemon_inside.h - what other rooms of the library need of this one; not installed.
 */
#ifndef LEMON_INSIDE_H
#define LEMON_INSIDE_H

#include "lemon.h"

#include <stdbool.h>

/* The lowest code of all ranks; LEMON_ERR_PARAM if the values, at most 64, are not the same on
 * all. Collective. */
int lemon_inside_agree(MPI_Comm, int code);
int lemon_inside_agree_on(MPI_Comm, int code, const int64_t *values, int n);

/* Hands a message to the handler, if there is one, with the rank unless it is MPI_COMM_NULL;
 * returns `code`. */
int lemon_inside_say(MPI_Comm, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Closing a record no longer waits for the disk, unless it is to be verified. */
void lemon_inside_sync_later(LemonWriter *);

/* MPI_File_sync(), once all that non-blocking calls of this process have started has moved: of
 * any reader or writer, as Open MPI syncs nothing before. */
int lemon_inside_sync(MPI_File);

/* Whether what a non-blocking call has started has moved, well or not; local. */
bool lemon_inside_have_moved(LemonWriter *);

#endif
