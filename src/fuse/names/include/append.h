/*
 * append.h - write to a plain file of the tree that is also appended to below the mount.
 *
 * A kernel that caches writes places appended bytes by the length that it knows, and sends them
 * later; by then another process may have appended to the file below the mount. So while every
 * program that has such a file open for writing only appends to it, bytes that the kernel sends
 * beyond the end that it knows are appended to the real file. If they end up at another offset,
 * the file is "moved": for programs that have it open, offsets are translated between the
 * kernel's and the real ones. Once all their data has arrived, a program that opens the file
 * gets a new node (limefs_node_is_current()), through which the kernel reads the real bytes.
 */
#ifndef LIMEFS_APPEND_H
#define LIMEFS_APPEND_H

#include "inode.h"

#include <sys/types.h>

/* Note that the node's file, with that identity, was opened for writing with these flags of
 * open(2), and that it was closed. The caller holds fs->lock. limefs_append_note_open() returns
 * whether the file counts as opened only to append, for limefs_append_note_close(). */
bool limefs_append_note_open(struct limefs_node *, int flags, const struct limefile_identity *);
void limefs_append_note_close(struct limefs_node *, bool appends);

/* Notes a close(2) of an open file of the node. The kernel reports it at once; the last close
 * it reports later, or never, as other processes may have the same file open. */
void limefs_append_note_flush(struct limefs *, struct limefs_node *);

/* Returns true if programs that have the file open for writing still need the node as the
 * kernel knows it. The caller holds fs->lock. */
bool limefs_append_needs_node(const struct limefs_node *);

/* Returns true if a file may be opened although its length is not the one that the kernel
 * knows: the kernel has none of its bytes, or the program appends and the last change,
 * *changed, is recent. Otherwise open(2) could fail, as the file may change before each of the
 * kernel's two tries. */
bool limefs_append_allows_open(struct limefs *, const struct limefs_node *, int flags,
                               const struct timespec *changed);

/* Like pread(2) and pwrite(2), but for all n bytes, at the kernel's offset. Return the number
 * of bytes, or -errno. */
ssize_t limefs_append_read(struct limefs_node *, int fd, void *buf, size_t n, uint64_t offset);
ssize_t limefs_append_write(struct limefs *, struct limefs_node *, int fd, const char *buf,
                            size_t n, uint64_t offset);

/* Like ftruncate(2) and fallocate(2), with the kernel's offsets; return 0 or -errno. Nothing
 * can be allocated in a moved file (-EOPNOTSUPP). */
int limefs_append_truncate(struct limefs *, struct limefs_node *, int fd, uint64_t bytes);
int limefs_append_allocate(struct limefs *, struct limefs_node *, int fd, int mode,
                           uint64_t offset, uint64_t bytes);

void limefs_append_free(struct limefs_node *); /* frees node->plain.append */

#endif
