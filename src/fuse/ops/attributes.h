/*
 * attributes.h - mode, owner, length and times set: of records, containers and what else a
 * tree holds. Node ids as in inode.h; results 0 or -errno. The thread has the caller's rights.
 */
#ifndef LIMEFS_ATTRIBUTES_H
#define LIMEFS_ATTRIBUTES_H

#include "file.h"
#include "reply.h"

/* `which` says, by FUSE_SET_ATTR_*, what of *st is to be set. */
int limefs_set_attributes(struct limefs *, uint64_t id, struct limefs_file *, int which,
                          const struct stat *st);

#endif
