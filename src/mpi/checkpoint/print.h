/* print.h - print sizes, names, and the number of particles per rank */
#ifndef CHECKPOINT_PRINT_H
#define CHECKPOINT_PRINT_H

#include "input.h"

enum {
    CHECKPOINT_NAME_BYTES = 4096 + 8,
};

/* Copies path to text, with '?' for control characters and invalid UTF-8. Returns text. */
const char *checkpoint_printable(const char *path, char text[CHECKPOINT_NAME_BYTES]);

/* Returns the name of a LEMON_Types value, for example "float64"; "?" if it is invalid. */
const char *checkpoint_type_name(int type);

struct checkpoint_balance {
    int ranks, empty;      /* empty: ranks without particles */
    double min, mean, max; /* number of particles per rank */
};

/* Computes from the index how evenly `ranks` ranks would share the particles. The result is
 * only an estimate if the decomposition cuts cells: particles are then assumed to be evenly
 * spread in a cell. Returns a Lemon code, the same on all ranks. Collective. */
int checkpoint_balance(const struct checkpoint_world *, const LemonCells *, int ranks,
                       enum checkpoint_decomposition, struct checkpoint_balance *);

/* Rank 0 prints "read C: 1000 particles, 200 to 300 a rank (mean 250), 0.012 s, 5.3 MB/s",
 * unless quiet. what: "read" or "written". seconds: this rank's time; rank 0 prints the maximum
 * over all ranks. Collective. */
void checkpoint_print_transfer(const struct checkpoint_world *, const char *what,
                               const char *path, const struct checkpoint_particles *,
                               double seconds, bool quiet);

#endif
