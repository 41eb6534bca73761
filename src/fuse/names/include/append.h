/*
 * append.h - write to a plain file of the tree to which programs also append below the mount,
 * that is, directly in the source directory.
 *
 * A kernel that caches writes places appended bytes at the end of file that it knows, and sends
 * them later; by then another process may have appended to the file below the mount. So while
 * all programs that write to the file through the mount only append, the daemon appends bytes
 * that the kernel sends for offsets beyond that end to the real file. If they get another
 * offset there, the file is "moved": the functions here translate the kernel's offsets to real
 * ones for programs that have the file open. Once all their data has arrived, a program that
 * opens the file gets a new node (limefs_node_is_current()) with the real offsets.
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

/* Notes a FLUSH request, which the kernel sends at once for each close(2) of a file of the
 * node. It sends the release later, or not while another process shares the open file. */
void limefs_append_note_flush(struct limefs *, struct limefs_node *);

/* Returns true if programs that have the file open for writing still need this node, because
 * not all of their data may have arrived. The caller holds fs->lock. */
bool limefs_append_needs_node(const struct limefs_node *);

/* Returns true if a file may be opened although its length is not the one that the kernel
 * knows: if the kernel has none of its bytes and the program only reads or appends, or if the
 * program appends and the last change, at *changed, is recent. Without this, open(2) could
 * fail, because a file that is being written may change before both of the kernel's tries. */
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
