/*
 * passthrough.h - files of a tree that the kernel reads itself
 *
 * A file that is no container is given to the kernel as it is opened, if that can
 * (FUSE_PASSTHROUGH, Linux 6.9; root's mounts, read-only): no byte of it passes through the
 * daemon, and it has no second copy in the page cache.
 */
#ifndef LIMEFS_PASSTHROUGH_H
#define LIMEFS_PASSTHROUGH_H

#include "inode.h"

/* Gives the file to the kernel, if it is the first that is opened of its node: what the kernel
 * knows it by, or 0. */
int limefs_passthrough_prepare(struct limefs *, const struct limefs_node *, int fd);

/* With fs->lock held: the node has one more open file, or one less. They return what is to be
 * dropped, without the lock. */
int limefs_passthrough_opened(struct limefs *, struct limefs_node *, int backing);
int limefs_passthrough_closed(struct limefs_node *);
void limefs_passthrough_drop(struct limefs *, int backing); /* 0: nothing */

#endif
