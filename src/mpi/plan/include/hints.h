/* hints.h - read I/O hints from the user's MPI_Info or from the opened file */
#ifndef LEMON_HINT_H
#define LEMON_HINT_H

#include <mpi.h>
#include <stdint.h>

enum {
    LEMON_HINT_STRIPE,      /* "striping_unit" */
    LEMON_HINT_AGGREGATORS, /* "cb_nodes" */
    LEMON_HINT_ROUND_BYTES, /* "cb_buffer_size" */
    LEMON_HINT_OVERFULL,    /* "lemon_overfull" */
    LEMON_HINTS,
};

enum {
    LEMON_STRIPE_DEFAULT = 1 << 20, /* bytes, if the file's stripe is not known */
};

/* A hint's value is a number from 1 to `max`. */
struct lemon_hint {
    const char *key;
    int64_t max;
};
extern const struct lemon_hint lemon_hints[LEMON_HINTS];

/* Sets values[] to the hints in `info`; 0: `info` does not have the hint. Returns the index of
 * the first hint whose value is not a number from 1 to `max`, or -1 if all are valid. Local. */
int lemon_hints_parse(MPI_Info info, int64_t values[LEMON_HINTS]);

/* Returns the stripe in bytes that MPI reports for the file. Returns 0 if MPI reports none, if
 * the ranks' stripes differ, or if any rank passes MPI_FILE_NULL. Collective. */
int64_t lemon_hints_file_stripe(MPI_File file, MPI_Comm comm);

#endif
