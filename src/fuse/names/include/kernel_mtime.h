/*
 * kernel_mtime.h - track which mtime of a plain file the kernel knows
 *
 * A kernel that caches writes ignores the times that the file system reports for a file that it
 * knows. So if another program has changed a file, limefs_node_lookup_child() makes a new node.
 * The daemon recognizes such a change by the mtime: it differs from the one that was noted when
 * the node was made, or after this mount's latest change.
 */
#ifndef LIMEFS_KERNEL_MTIME_H
#define LIMEFS_KERNEL_MTIME_H

#include "inode.h"

/* Notes the times of a new node's file. The caller holds fs->lock. */
void limefs_kernel_mtime_init(struct limefs_node *, const struct limefile_identity *);

/* Called before and after this mount changes the times of the node's file, which is open as fd.
 * err: the result of the change, 0 or -errno. */
void limefs_kernel_mtime_change_begin(struct limefs *, struct limefs_node *);
void limefs_kernel_mtime_change_end(struct limefs *, struct limefs_node *, int fd, int err);

/* Notes that the kernel has set this mtime. Called before limefs_kernel_mtime_change_end(). The
 * caller holds node->io_lock from before it sets the time of the file until after this call. */
void limefs_kernel_mtime_note_set(struct limefs *, struct limefs_node *,
                                  const struct timespec *mtime);

/* limefs_kernel_mtime_note_write() notes a write through the mount; the caller holds fs->lock.
 * limefs_kernel_mtime_update() notes the file's times after writes; it is called when the
 * kernel has sent all data of a program, and before a close. */
void limefs_kernel_mtime_note_write(struct limefs_node *);
void limefs_kernel_mtime_update(struct limefs *, struct limefs_node *, int fd);

/* Returns true if the kernel sets the mtime that it once got from the daemon, but since then
 * another program has changed the file, open as fd: the caller must not set this mtime. */
bool limefs_kernel_mtime_is_outdated(struct limefs *, const struct limefs_node *, int fd,
                                     const struct timespec *mtime);

/* Returns false if other programs have changed the file. The caller holds fs->lock. */
bool limefs_kernel_mtime_is_current(const struct limefs_node *,
                                    const struct limefile_identity *);

#endif
