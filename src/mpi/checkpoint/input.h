/*
 * input.h - a checkpoint that all ranks read
 */
#ifndef CHECKPOINT_INPUT_H
#define CHECKPOINT_INPUT_H

#include "molecule.h"
#include "world.h"

/* The text record that may be before a checkpoint, in its message: the header of MarDyn's old
 * ASCII format. */
#define CHECKPOINT_HEADER_TYPE "mardyn-header"

enum checkpoint_decomposition {
    CHECKPOINT_REGULAR,
    CHECKPOINT_KD,
};

extern const char *const checkpoint_decomposition_names[]; /* "regular", "kd", NULL */

struct checkpoint_input {
    const char *path; /* not owned */
    int fd;           /* rank 0's, to compare outputs with; -1 on others */
    MPI_File file;
    LemonReader *reader;
    LemonCells *cells;
    char *header; /* the text record, with a NUL after it; NULL: there is none */
};

/* All are collective but close, which is called after success only; where they return false
 * rank 0 has said why. */

/* Opens a file and finds the first checkpoint in it. */
bool checkpoint_input_open(const struct checkpoint_world *, const char *path,
                           struct checkpoint_input *);
void checkpoint_input_close(struct checkpoint_input *);

/* What this rank has in that decomposition of it. flags: of lemonReadCells(). */
bool checkpoint_input_read(const struct checkpoint_world *, struct checkpoint_input *,
                           enum checkpoint_decomposition, int flags,
                           struct checkpoint_particles *);

/* The same for a box. */
bool checkpoint_input_read_box(const struct checkpoint_world *, struct checkpoint_input *,
                               const double lower[3], const double upper[3], int flags,
                               struct checkpoint_particles *);

#endif
