/*
 * textfile.h - MarDyn's old ASCII format, read by all ranks, each a part of the lines
 */
#ifndef CHECKPOINT_TEXTFILE_H
#define CHECKPOINT_TEXTFILE_H

#include "mardyn.h"
#include "world.h"

struct checkpoint_textfile {
    const char *path;
    FILE *file;
    int64_t bytes;
    char *text; /* the header's, with a NUL */
    struct checkpoint_header header;
};

/* Collective; where they return false rank 0 has said why: "path: line N: reason". */

/* Opens it and reads the header. Close it after success only. */
bool checkpoint_textfile_open(const struct checkpoint_world *, const char *path,
                              struct checkpoint_textfile *);
void checkpoint_textfile_close(struct checkpoint_textfile *);

/* The molecules of this rank's lines; all ranks together have as many as the header says. */
bool checkpoint_textfile_read(const struct checkpoint_world *, struct checkpoint_textfile *,
                              struct checkpoint_particles *);

#endif
