/*
 * namespace.h - creates, removes and renames records, containers and other files of the source
 * tree. Node ids are those of inode.h; an entry is filled as reply.h says. Functions return 0
 * or a negative code for limefs_errno(). The thread must have the caller's rights.
 */
#ifndef LIMEFS_NAMESPACE_H
#define LIMEFS_NAMESPACE_H

#include "file.h"
#include "reply.h"

int limefs_create(struct limefs *, uint64_t parent, const char *name, mode_t mode, int flags,
                  struct limefs_file **, struct fuse_entry_param *);
int limefs_make_directory(struct limefs *, uint64_t parent, const char *name, mode_t mode,
                          struct fuse_entry_param *);
int limefs_make_special(struct limefs *, uint64_t parent, const char *name, mode_t mode, dev_t,
                        struct fuse_entry_param *); /* a FIFO, socket or device */
int limefs_make_symlink(struct limefs *, uint64_t parent, const char *name, const char *target,
                        struct fuse_entry_param *); /* a symbolic link */
int limefs_link(struct limefs *, uint64_t id, uint64_t parent, const char *name,
                struct fuse_entry_param *); /* a hard link */
int limefs_remove(struct limefs *, uint64_t parent, const char *name);
int limefs_remove_directory(struct limefs *, uint64_t parent, const char *name);
int limefs_rename(struct limefs *, uint64_t parent, const char *name, uint64_t new_parent,
                  const char *new_name, unsigned flags);

#endif
