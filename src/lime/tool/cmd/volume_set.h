/* volume_set.h - open all files of a QIO volume set, given the name of one of them */
#ifndef VOLUME_SET_H
#define VOLUME_SET_H

#include "limevolumes.h"

struct volume_set {
    const char *path; /* as the user gave it; not owned */
    size_t count;
    char **names; /* paths; like fds and files, in the order of the volumes' numbers */
    int *fds;
    struct limefile_fd *files;
    struct limefile_volumes *volumes; /* joins the files to one container */
};

/* True if the path has a volume's form: "NAME.vol0012" or "vol0012/NAME". */
bool volume_set_is_name(const char *path);

/* Returns false if the path has a volume's form, and its set has another volume with the number
 * 0. */
bool volume_set_is_first(const char *path);

/* Opens the set to which the volume `path` belongs. Returns an exit status, after a message if
 * it is not TOOL_GOOD; call volume_set_close() only after TOOL_GOOD. */
int volume_set_open(struct volume_set *, const char *path,
                    const struct limefile_volumes_options *);
void volume_set_close(struct volume_set *);

/* Fills text with a message about the i-th record that the option skips_parts omits: the
 * record's ordinal in the master volume, and the part of the lattice that it has. */
enum { VOLUME_SET_TEXT_MAX = 512 };
void volume_set_part_text(const struct volume_set *, size_t i, char text[VOLUME_SET_TEXT_MAX]);

#endif
