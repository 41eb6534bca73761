/* print.h - print sizes, names, and the number of particles per rank */
#ifndef CHECKPOINT_PRINT_H
#define CHECKPOINT_PRINT_H

#include "input.h"

enum {
    CHECKPOINT_NAME_BYTES = 4096 + 8,
};

/* Returns a file name without control characters, valid for JSON. */
const char *checkpoint_printable(const char *path, char text[CHECKPOINT_NAME_BYTES]);

/* Returns "float64" for LEMON_FLOAT64. */
const char *checkpoint_type_name(int type);

struct checkpoint_balance {
    int ranks, empty; /* empty: ranks without particles */
    double min, mean, max;
};

/* Computes from the index how evenly ranks would share a checkpoint's particles; the ranks
 * divide the work. In a regular decomposition it is an estimate, as the particles of a cut cell
 * count by volume. Returns LEMON_SUCCESS, or an error on all ranks. Collective. */
int checkpoint_balance(const struct checkpoint_world *, const LemonCells *, int ranks,
                       enum checkpoint_decomposition, struct checkpoint_balance *);

/* Rank 0 prints "read    C: 1000 particles, 200 to 300 a rank (mean 250), 0.012 s, 5.3 MB/s".
 * seconds: of this rank; the maximum counts. Collective. */
void checkpoint_print_transfer(const struct checkpoint_world *, const char *what,
                               const char *path, const struct checkpoint_particles *,
                               double seconds, bool quiet);

#endif
