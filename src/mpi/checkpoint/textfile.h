/* textfile.h - MarDyn's old ASCII format, of which each rank reads a part of the lines */
#ifndef CHECKPOINT_TEXTFILE_H
#define CHECKPOINT_TEXTFILE_H

#include "mardyn.h"
#include "world.h"

struct checkpoint_textfile {
    const char *path;
    FILE *file;
    int64_t bytes;
    char *text; /* of the header, with a NUL */
    struct checkpoint_header header;
};

/* Collective; they return false after rank 0 has printed "path: line N: reason". */

/* Opens it and reads the header. Close it only after success. */
bool checkpoint_textfile_open(const struct checkpoint_world *, const char *path,
                              struct checkpoint_textfile *);
void checkpoint_textfile_close(struct checkpoint_textfile *);

/* Reads the molecules in this rank's lines; their number on all ranks is that in the header. */
bool checkpoint_textfile_read(const struct checkpoint_world *, struct checkpoint_textfile *,
                              struct checkpoint_particles *);

#endif
