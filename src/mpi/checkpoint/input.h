/* input.h - read a checkpoint on all ranks */
#ifndef CHECKPOINT_INPUT_H
#define CHECKPOINT_INPUT_H

#include "molecule.h"
#include "world.h"

/* The type of an optional text record before a checkpoint, in the same message: the header of
 * MarDyn's old ASCII format. */
#define CHECKPOINT_HEADER_TYPE "mardyn-header"

enum checkpoint_decomposition {
    CHECKPOINT_REGULAR,
    CHECKPOINT_KD,
};

extern const char *const checkpoint_decomposition_names[]; /* "regular", "kd", NULL */

struct checkpoint_input {
    const char *path; /* not owned */
    int fd;           /* on rank 0, to compare outputs with; -1 on others */
    MPI_File file;
    LemonReader *reader;
    LemonCells *cells;
    char *header; /* the text record, with a NUL after it; NULL: none */
};

/* All but close are collective; if they return false, rank 0 has printed why. Call close only
 * after a successful open. */

/* Opens a file and finds its first checkpoint. */
bool checkpoint_input_open(const struct checkpoint_world *, const char *path,
                           struct checkpoint_input *);
void checkpoint_input_close(struct checkpoint_input *);

/* Reads this rank's particles in that decomposition. flags: those of lemonReadCells(). */
bool checkpoint_input_read(const struct checkpoint_world *, struct checkpoint_input *,
                           enum checkpoint_decomposition, int flags,
                           struct checkpoint_particles *);

/* Reads the particles in a box. */
bool checkpoint_input_read_box(const struct checkpoint_world *, struct checkpoint_input *,
                               const double lower[3], const double upper[3], int flags,
                               struct checkpoint_particles *);

#endif
