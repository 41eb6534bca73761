/*
 * hint.h - what users, by an MPI_Info, or the file, say about how to move data
 */
#ifndef LEMON_HINT_H
#define LEMON_HINT_H

#include <mpi.h>
#include <stdint.h>

enum {
    LEMON_HINT_STRIPE,   /* "striping_unit" */
    LEMON_HINT_MOVERS,   /* "cb_nodes" */
    LEMON_HINT_ROUND,    /* "cb_buffer_size" */
    LEMON_HINT_OVERFULL, /* "lemon_overfull" */
    LEMON_HINTS,
};

enum {
    LEMON_STRIPE = 1 << 20, /* where nobody says another one */
};

/* The least value is 1. */
struct lemon_hint {
    const char *key;
    int64_t most;
};
extern const struct lemon_hint lemon_hints[LEMON_HINTS];

/* What `info` says, 0 where it says nothing. Returns the first hint whose value is no number
 * from 1 to the most, or -1. Local. */
int lemon_hints_parse(MPI_Info info, int64_t values[LEMON_HINTS]);

/* The stripe that the file was opened with, if it says so and all ranks see the same; else 0.
 * MPI_FILE_NULL says nothing. Collective. */
int64_t lemon_hints_stripe(MPI_File file, MPI_Comm comm);

#endif
