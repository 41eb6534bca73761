/*
 * dir.h - an open directory: the records of a view, or a directory of the tree.
 */
#ifndef LIMEFS_DIR_H
#define LIMEFS_DIR_H

#include "reply.h"

struct limefs_dir;

int limefs_dir_open(struct limefs *, uint64_t id, struct limefs_dir **);
void limefs_dir_close(struct limefs *, struct limefs_dir *);
/* What it stands for is on the disk. */
int limefs_dir_sync(struct limefs_dir *);

void limefs_dirs_release(struct limefs *); /* closes all */

/* A container's list that begins, at first or as by rewinddir(), is of what its name leads to
 * then: whether that may be something else than what was listed last, and the change to it, if
 * the caller may read it. */
bool limefs_dir_is_old(struct limefs *, struct limefs_dir *);
void limefs_dir_renew(struct limefs *, struct limefs_dir *);

/* It is one of the tree, whose names may be looked up as they are listed: with the caller's
 * rights. */
bool limefs_dir_is_folder(const struct limefs_dir *);

/* Fills buf with entries after `offset`, with attributes if `plus`; bytes, or -errno. */
ssize_t limefs_dir_read(struct limefs *, fuse_req_t, struct limefs_dir *, char *buf, size_t cap,
                        off_t offset, bool plus);

#endif
