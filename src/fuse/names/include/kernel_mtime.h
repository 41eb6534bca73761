/*
 * kernel_mtime.h - track which mtime of a plain file the kernel knows
 *
 * A kernel that caches writes ignores the times that the file system reports for a file that it
 * knows. So a file that other programs have changed becomes a new node
 * (limefs_node_lookup_child()): its mtime differs from the one when its node was made, or after
 * this mount's last change.
 */
#ifndef LIMEFS_KERNEL_MTIME_H
#define LIMEFS_KERNEL_MTIME_H

#include "inode.h"

/* Notes the times of a new node's file. The caller holds fs->lock. */
void limefs_kernel_mtime_init(struct limefs_node *, const struct limefile_identity *);

/* Called before and after this mount changes the times of the file that is open as fd. err: 0,
 * or why it could not change them. */
void limefs_kernel_mtime_change_begin(struct limefs *, struct limefs_node *);
void limefs_kernel_mtime_change_end(struct limefs *, struct limefs_node *, int fd, int err);

/* Called before limefs_kernel_mtime_change_end(): the kernel has set this mtime. The caller
 * holds node->io_lock from before it sets the time below the mount until after this call. */
void limefs_kernel_mtime_note_set(struct limefs *, struct limefs_node *,
                                  const struct timespec *mtime);

/* The same for a write by a program that has the file open; the caller holds fs->lock. Call
 * limefs_kernel_mtime_update() when the kernel has sent all data, and before a close. */
void limefs_kernel_mtime_note_write(struct limefs_node *);
void limefs_kernel_mtime_update(struct limefs *, struct limefs_node *, int fd);

/* Returns true if the kernel only sends back the mtime that it got for the file that is open as
 * fd, and other programs have changed the file since. */
bool limefs_kernel_mtime_is_outdated(struct limefs *, const struct limefs_node *, int fd,
                                     const struct timespec *mtime);

/* Returns false if other programs have changed the file. The caller holds fs->lock. */
bool limefs_kernel_mtime_is_current(const struct limefs_node *,
                                    const struct limefile_identity *);

#endif
