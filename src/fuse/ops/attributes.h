/*
 * attributes.h - sets mode, owner, length and times of records, containers and other files of
 * the source tree. Node ids are those of inode.h. The thread must have the caller's rights.
 */
#ifndef LIMEFS_ATTRIBUTES_H
#define LIMEFS_ATTRIBUTES_H

#include "file.h"
#include "reply.h"

/* Sets the attributes that `which` selects (FUSE_SET_ATTR_*) to those of *st. file may be NULL.
 * Returns 0, -errno, or LIMEFILE_E_NO_RECORD for a record that was removed. */
int limefs_attributes_set(struct limefs *, uint64_t id, struct limefs_file *, int which,
                          const struct stat *st);

#endif
