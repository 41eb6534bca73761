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
    LEMON_STRIPE_DEFAULT = 1 << 20, /* bytes, the default */
};

/* Values are 1 to `max`. */
struct lemon_hint {
    const char *key;
    int64_t max;
};
extern const struct lemon_hint lemon_hints[LEMON_HINTS];

/* Sets values[] to the hints in `info`, or to 0. Returns the index of the first hint whose
 * value is not a number from 1 to its `max`, or -1 if all are valid. Local. */
int lemon_hints_parse(MPI_Info info, int64_t values[LEMON_HINTS]);

/* Returns the stripe that MPI reports for the file, in bytes, if it is the same on all ranks,
 * or 0. A rank with MPI_FILE_NULL has no stripe. Collective. */
int64_t lemon_hints_file_stripe(MPI_File file, MPI_Comm comm);

#endif
