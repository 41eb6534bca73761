/*
 * passthrough.h - files of a tree that the kernel reads itself
 *
 * A file that is no container is given to the kernel as it is opened, if that can
 * (FUSE_PASSTHROUGH, Linux 6.9; root's mounts, read-only): no byte of it passes through the
 * daemon, and it has no second copy in the page cache.
 */
#ifndef LIMEFS_PASSTHROUGH_H
#define LIMEFS_PASSTHROUGH_H

#include "file.h"

/* With fs->lock held; file->node and file->fd are set. */
void limefs_passthrough_opened(struct limefs *, struct limefs_file *);
void limefs_passthrough_closed(struct limefs *, const struct limefs_file *);

#endif
