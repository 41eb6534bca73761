/*
 * follow.h - a file of the tree that grows below the mount while somebody reads it (tail -f).
 *
 * A kernel that caches what is written takes no length from us. So it is made to drop the
 * file's last page, and then to extend the file as if a byte had been stored there.
 */
#ifndef LIMEFS_FOLLOW_H
#define LIMEFS_FOLLOW_H

#include "inode.h"

/* The node's file, open as fd, is like that now. From the first time on, whoever opens it
 * anew gets another node. */
void limefs_follow(struct limefs *, struct limefs_node *, int fd, const struct stat *);

/* The same, of a node that somebody has open. If others have changed the file and its length is
 * the same, the kernel drops the bytes that it has. */
void limefs_follow_bytes(struct limefs *, struct limefs_node *, const struct stat *);

#endif
