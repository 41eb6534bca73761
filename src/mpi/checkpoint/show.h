/*
 * show.h - print sizes, names, and how many particles each rank has
 */
#ifndef CHECKPOINT_SHOW_H
#define CHECKPOINT_SHOW_H

#include "input.h"

enum {
    CHECKPOINT_SHOWN_BYTES = 4096 + 8,
};

/* A name of a file without what steers a terminal, and fit for JSON. */
const char *checkpoint_shown(const char *path, char text[CHECKPOINT_SHOWN_BYTES]);

/* "float64", of LEMON_FLOAT64. */
const char *checkpoint_type_word(int type);

struct checkpoint_balance {
    int ranks, empty; /* how many have none */
    double least, mean, most;
};

/* How evenly ranks would share a checkpoint's particles, by its index. Collective: the work is
 * divided. Of a regular decomposition the particles of a cell that is cut count by volume, so
 * it is an estimate. LEMON_SUCCESS, or an error on all ranks. */
int checkpoint_balance(const struct checkpoint_world *, const LemonCells *, int ranks,
                       enum checkpoint_decomposition, struct checkpoint_balance *);

/* Collective: rank 0 prints "read    C: 1000 particles, 200 to 300 a rank (mean 250), 0.012 s,
 * 5.3 MB/s". seconds: of this rank; the slowest one's count. */
void checkpoint_show_move(const struct checkpoint_world *, const char *what, const char *path,
                          const struct checkpoint_particles *, double seconds, bool quiet);

#endif
