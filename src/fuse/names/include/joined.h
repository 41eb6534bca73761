/*
 * joined.h - the volumes of a set that QIO has written, NAME.vol0000 ... in one folder, as the
 * container NAME that they are together (-o formats).
 *
 * Names are hints, here too: volumes are found below a folder's descriptor, through no link,
 * and what is read is what those descriptors have open. Owner, mode and times are made of those
 * of all volumes: whoever may not read one of them may not read the container.
 *
 * What such a struct stat says is the same as long as nothing was changed: st_ino stands for
 * the volumes' numbers, st_size for their sizes and times (it is not a size), st_mode says that
 * it is a directory, which tells it from a container's own file.
 */
#ifndef LIMEFS_JOINED_H
#define LIMEFS_JOINED_H

#include "limefile.h"
#include "limefs.h"

#include <sys/types.h>

struct limefs_joined;

/* What the volumes of `name` in `folder` are now. -ENOENT: there are none, or there is a file
 * of that name. They are not opened. */
int limefs_joined_stat(const struct limefs *, int folder, const char *name, struct stat *);

/* The same, and whether they look like a whole set; if not, the log says why, and it is
 * -ENOENT. `label`: the folder's, for the log. Without the lists of sites: so it may fail all
 * the same when it is opened, and is not there from then on. */
int limefs_joined_look(struct limefs *, int folder, const char *label, const char *name,
                       struct stat *);

/* Opens and joins them. -ENOENT as above, -ESTALE if they are not those of `want`, or change
 * meanwhile. *st is as of then; *moving: they may have changed meanwhile, with the same times.
 * The caller closes them. */
int limefs_joined_open(struct limefs *, int folder, const char *label, const char *name,
                       const struct limefs_stamp *want, struct limefs_joined **,
                       struct stat *st, bool *moving);
void limefs_joined_close(struct limefs_joined *); /* NULL: nothing happens */

struct limefile_source *limefs_joined_source(const struct limefs_joined *);
size_t limefs_joined_memory(const struct limefs_joined *);
size_t limefs_joined_volumes(const struct limefs_joined *);

/* What is open, as it is now. */
int limefs_joined_fstat(const struct limefs_joined *, struct stat *);
int limefs_joined_fd(const struct limefs_joined *, size_t volume);

/* limefs_stamp_is_moving() of any of them. */
bool limefs_joined_is_moving(const struct limefs_joined *, const struct timespec *ctime);

/* The volumes' access list, as fgetxattr(2) for one: the same for all, or one that lets nobody
 * in but their owner. */
ssize_t limefs_joined_acl(const struct limefs_joined *, const char *name, char *buf,
                          size_t cap);

/* The sets of a folder that limefs_joined_look() would find; NULL: none. To be freed by
 * limefs_joined_free(). */
struct limefs_joined_name {
    struct limefs_joined_name *next;
    ino_t ino;
    char name[];
};
struct limefs_joined_name *limefs_joined_list(struct limefs *, int folder, const char *label);
void limefs_joined_free(struct limefs_joined_name *);

#endif
