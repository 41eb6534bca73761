/* setfile.h - open all volumes of a set on disk, given the name of one of them */
#ifndef SETFILE_H
#define SETFILE_H

#include "limevolumes.h"

struct setfile {
    const char *path; /* as the user gave it; not owned */
    size_t count;
    char **names; /* of the volumes, ordered by number */
    int *fds;
    struct limefile_fd *files;
    struct limefile_volumes *volumes;
};

/* True if the path has a volume's form: "NAME.vol0012" or "vol0012/NAME". */
bool setfile_is(const char *path);

/* Exit status, after a message if it is not GOOD; call setfile_close() only after GOOD. */
int setfile_open(struct setfile *, const char *path, const struct limefile_volumes_options *);
void setfile_close(struct setfile *);

/* Writes which record of the master volume skips_parts omits as its i-th, and why. */
enum { SETFILE_PART_MAX = 512 };
void setfile_part_text(const struct setfile *, size_t i, char text[SETFILE_PART_MAX]);

#endif
