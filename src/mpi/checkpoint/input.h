/* input.h - read a checkpoint on all ranks */
#ifndef CHECKPOINT_INPUT_H
#define CHECKPOINT_INPUT_H

#include "molecule.h"
#include "world.h"

/* Type of an optional text record that contains MarDyn's header. It precedes the checkpoint, in
 * the same message. */
#define CHECKPOINT_HEADER_TYPE "mardyn-header"

enum checkpoint_decomposition {
    CHECKPOINT_REGULAR, /* equal boxes: lemonRegularBox() */
    CHECKPOINT_KD,      /* boxes with about equal numbers of particles: lemonBalancedBox() */
};

extern const char *const checkpoint_decomposition_names[]; /* "regular", "kd", NULL */

struct checkpoint_input {
    const char *path; /* not owned */
    int fd;           /* the file on rank 0, for checkpoint_output_open(); -1 on other ranks */
    MPI_File file;
    LemonReader *reader;
    LemonCells *cells;
    char *header; /* text of the record CHECKPOINT_HEADER_TYPE; NULL: no such record */
};

/* All functions are collective. If one returns false, rank 0 has printed the reason. Call
 * checkpoint_input_close() only after a successful open. */

/* Opens a file and finds its first checkpoint. path must stay valid. */
bool checkpoint_input_open(const struct checkpoint_world *, const char *path,
                           struct checkpoint_input *);
void checkpoint_input_close(struct checkpoint_input *);

/* Reads the particles in this rank's box of the decomposition; the caller frees them. flags:
 * the flags of lemonReadCells(). */
bool checkpoint_input_read(const struct checkpoint_world *, struct checkpoint_input *,
                           enum checkpoint_decomposition, int flags,
                           struct checkpoint_particles *);

/* Reads the particles in the box [lower, upper), which can differ from rank to rank. */
bool checkpoint_input_read_box(const struct checkpoint_world *, struct checkpoint_input *,
                               const double lower[3], const double upper[3], int flags,
                               struct checkpoint_particles *);

#endif
