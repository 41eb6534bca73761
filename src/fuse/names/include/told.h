/*
 * told.h - the last change of a plain file that the kernel knows of
 *
 * A kernel that caches what is written takes no time of change from us for a file that it
 * knows. So one that others have changed is another node (limefs_node_child()): one that has
 * another time below than when its node was made, or after our own last change.
 */
#ifndef LIMEFS_TOLD_H
#define LIMEFS_TOLD_H

#include "inode.h"

/* A new node's file is like that. With fs->lock held. */
void limefs_told_first(struct limefs_node *, const struct limefile_identity *);

/* This mount is about to change when it was last changed; that was done, or not (err), to the
 * file that is open as fd. */
void limefs_told_begin(struct limefs *, struct limefs_node *);
void limefs_told_end(struct limefs *, struct limefs_node *, int fd, int err);

/* Before limefs_told_end(): the kernel has set it to that. node->work is held from before it is
 * set below until this is known. */
void limefs_told_time(struct limefs *, struct limefs_node *, const struct timespec *mtime);

/* The same of what somebody writes who has it open, and who calls limefs_told_note() when the
 * kernel has sent all of it, and before it is closed: with fs->lock held. */
void limefs_told_written(struct limefs_node *);
void limefs_told_note(struct limefs *, struct limefs_node *, int fd);

/* True if the kernel, which tells that mtime, was told it of the file that is open as fd, and
 * others have changed it since. */
bool limefs_told_before(struct limefs *, const struct limefs_node *, int fd,
                        const struct timespec *mtime);

/* False if others have changed it. With fs->lock held. */
bool limefs_told_stands(const struct limefs_node *, const struct limefile_identity *);

#endif
