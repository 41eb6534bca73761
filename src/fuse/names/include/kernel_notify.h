/*
 * kernel_notify.h - report to the kernel that a plain file has grown below the mount (tail -f).
 *
 * A kernel that caches writes ignores the length that the file system reports. So the daemon
 * makes it drop the file's last page, and then stores the file's new last byte in its cache.
 */
#ifndef LIMEFS_KERNEL_NOTIFY_H
#define LIMEFS_KERNEL_NOTIFY_H

#include "inode.h"

/* Notifies the kernel if the node's file, open as fd, is longer now; ignores errors. In a
 * read-write mount, later opens of the file then get a new node (node_matches() in inode.c).
 * The caller must not hold fs->lock. */
void limefs_notify_growth(struct limefs *, struct limefs_node *, int fd, const struct stat *);

/* Makes the kernel drop its cached bytes of an open file if other programs have changed the
 * file but not its length. The caller must not hold fs->lock. */
void limefs_notify_change(struct limefs *, struct limefs_node *, const struct stat *);

#endif
