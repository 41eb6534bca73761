/* textfile.h - read a file in MarDyn's old ASCII format; each rank reads a part of its lines */
#ifndef CHECKPOINT_TEXTFILE_H
#define CHECKPOINT_TEXTFILE_H

#include "mardyn.h"
#include "world.h"

struct checkpoint_textfile {
    const char *path;
    FILE *file;
    int64_t bytes;
    char *text; /* the header's text, with a NUL */
    struct checkpoint_header header;
};

/* _open and _read are collective. If they return false, rank 0 has printed "path: reason" or,
 * for an invalid line, "path: line N: reason". */

/* Opens the file and reads its header. Call checkpoint_textfile_close() only after success. */
bool checkpoint_textfile_open(const struct checkpoint_world *, const char *path,
                              struct checkpoint_textfile *);
void checkpoint_textfile_close(struct checkpoint_textfile *);

/* Reads the molecules in this rank's lines; the caller frees them. Fails if all ranks together
 * do not have the number of molecules that the header states. */
bool checkpoint_textfile_read(const struct checkpoint_world *, struct checkpoint_textfile *,
                              struct checkpoint_particles *);

#endif
