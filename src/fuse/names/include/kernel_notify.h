/*
 * kernel_notify.h - report to the kernel that a plain file has grown below the mount (tail -f).
 *
 * A kernel that caches writes ignores the length that the file system reports. So the daemon
 * makes the kernel drop the file's last page from its cache, and puts the new last byte there.
 */
#ifndef LIMEFS_KERNEL_NOTIFY_H
#define LIMEFS_KERNEL_NOTIFY_H

#include "inode.h"

/* If the node's file, open as fd, is longer than the kernel knows, notifies the kernel; ignores
 * errors. The next open of the file in a read-write mount gets a new node (node_matches() in
 * inode.c). The caller must not hold fs->lock. */
void limefs_notify_growth(struct limefs *, struct limefs_node *, int fd, const struct stat *);

/* Makes the kernel drop its cached bytes of an open file if other programs have changed the
 * file but not its length. The caller must not hold fs->lock. */
void limefs_notify_change(struct limefs *, struct limefs_node *, const struct stat *);

#endif
