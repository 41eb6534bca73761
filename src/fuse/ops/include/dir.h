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

/* Before a part of the list of a directory of the tree is read together with attributes, with
 * the caller's rights: whether its names are looked up, too. Nothing for other directories. */
bool limefs_dir_is_folder(const struct limefs_dir *);
void limefs_dir_look_ahead(struct limefs *, struct limefs_dir *, off_t offset);

/* A name was looked up in a directory of the tree; one of it was entered. */
void limefs_dir_looked_up(struct limefs *, struct limefs_node *directory);
void limefs_dir_entered(struct limefs *, const struct limefs_node *);

/* Fills buf with entries after `offset`, with attributes if `plus`; bytes, or -errno. */
ssize_t limefs_dir_read(struct limefs *, fuse_req_t, struct limefs_dir *, char *buf, size_t cap,
                        off_t offset, bool plus);

#endif
