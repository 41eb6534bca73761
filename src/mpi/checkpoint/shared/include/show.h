/*
 * show.h - values for people
 */
#ifndef CHECKPOINT_SHOW_H
#define CHECKPOINT_SHOW_H

#include "balance.h"

enum {
    CHECKPOINT_SHOWN_BYTES = 4096 + 8,
    CHECKPOINT_SIZE_BYTES = 16,
};

/* A name of a file without what steers a terminal, and fit for JSON. */
const char *checkpoint_shown(const char *path, char text[CHECKPOINT_SHOWN_BYTES]);

/* "1.5 MB": decimal units. */
const char *checkpoint_size(double bytes, char text[CHECKPOINT_SIZE_BYTES]);

/* "float64", of LEMON_FLOAT64. */
const char *checkpoint_type_word(int type);

/* Collective: rank 0 prints "read    C: 1000 particles, 200 to 300 a rank (mean 250), 0.012 s,
 * 5.3 MB/s". seconds: of this rank; the slowest one's count. */
void checkpoint_show_move(const struct checkpoint_world *, const char *what, const char *path,
                          const struct checkpoint_particles *, double seconds, bool quiet);

#endif
