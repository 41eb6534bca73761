/* setfile.h - a set of volumes on disk, found by the name of one of them */
#ifndef SETFILE_H
#define SETFILE_H

#include "limevolumes.h"

struct setfile {
    const char *path; /* as the user gave it; not owned */
    size_t count;
    char **names; /* of the volumes, in the order of their numbers */
    int *fds;
    struct limefile_fd *files;
    struct limefile_volumes *volumes;
};

/* True if the path is named as a volume is: "NAME.vol0012", or "vol0012/NAME". */
bool setfile_is(const char *path);

/* An exit status, after a message if it is not GOOD; setfile_close() only after GOOD. */
int setfile_open(struct setfile *, const char *path, const struct limefile_volumes_options *);
void setfile_close(struct setfile *);

/* Writes which record of the master is left out, the i-th by skips_parts, and why. */
enum { SETFILE_PART_MAX = 512 };
void setfile_part_text(const struct setfile *, size_t i, char text[SETFILE_PART_MAX]);

#endif
