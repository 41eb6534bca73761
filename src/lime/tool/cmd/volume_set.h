/* volume_set.h - open all volumes of a set on disk, given the name of one of them */
#ifndef SETFILE_H
#define SETFILE_H

#include "limevolumes.h"

struct volume_set {
    const char *path; /* as the user gave it; not owned */
    size_t count;
    char **names; /* of the volumes, ordered by number */
    int *fds;
    struct limefile_fd *files;
    struct limefile_volumes *volumes;
};

/* True if the path has a volume's form: "NAME.vol0012" or "vol0012/NAME". */
bool volume_set_is_name(const char *path);

/* Exit status, after a message if it is not GOOD; call volume_set_close() only after GOOD. */
int volume_set_open(struct volume_set *, const char *path,
                    const struct limefile_volumes_options *);
void volume_set_close(struct volume_set *);

/* Writes which record of the master volume skips_parts omits as its i-th, and why. */
enum { VOLUME_SET_TEXT_MAX = 512 };
void volume_set_part_text(const struct volume_set *, size_t i, char text[VOLUME_SET_TEXT_MAX]);

#endif
