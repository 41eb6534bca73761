/*
 * append.h - write to a plain file of the tree to which programs also append below the mount,
 * that is, directly in the source directory.
 *
 * A kernel that caches writes places appended bytes at the end of the file that it knows, and
 * sends them later. In the meantime, another process may have appended to the file below the
 * mount. So, as long as all programs that write to the file through the mount only append, the
 * daemon appends the bytes that the kernel sends for offsets beyond the known end. If these
 * bytes get other offsets in the file, the file is called moved: for programs that have it
 * open, the functions here translate the kernel's offsets to the real ones. Once all data of
 * these programs has arrived, a program that opens the file gets a new node, with the real
 * offsets.
 */
#ifndef LIMEFS_APPEND_H
#define LIMEFS_APPEND_H

#include "inode.h"

#include <sys/types.h>

/* Note that the node's file, with this identity, was opened for writing with these flags of
 * open(2), and that it was closed. The caller holds fs->lock. limefs_append_note_open() returns
 * whether the open counts as one to append; limefs_append_note_close() needs this result. */
bool limefs_append_note_open(struct limefs_node *, int flags, const struct limefile_identity *);
void limefs_append_note_close(struct limefs_node *, bool appends);

/* Notes a FLUSH request for an open file of the node. The kernel sends FLUSH during each
 * close(2), but RELEASE later, when no process has the open file any more. */
void limefs_append_note_flush(struct limefs *, struct limefs_node *);

/* Returns true if programs that have the file open for writing still need this node, because
 * some of their data may not have arrived yet. The caller holds fs->lock. */
bool limefs_append_needs_node(const struct limefs_node *);

/* Returns true if a file may be opened although its length is not the one that the kernel
 * knows. A file whose bytes the kernel cannot have cached may be opened to read or append; any
 * other, to append, if its latest change, at *changed, is recent. Without this, open(2) could
 * fail: the kernel tries twice, but a file that is being written may change before each try. */
bool limefs_append_allows_open(struct limefs *, const struct limefs_node *, int flags,
                               const struct timespec *changed);

/* Like pread(2) and pwrite(2), but with the kernel's offset, and always for all n bytes (or up
 * to the end of file). Return the number of bytes, or -errno. */
ssize_t limefs_append_read(struct limefs_node *, int fd, void *buf, size_t n, uint64_t offset);
ssize_t limefs_append_write(struct limefs *, struct limefs_node *, int fd, const char *buf,
                            size_t n, uint64_t offset);

/* Like ftruncate(2) and fallocate(2), but return 0 or -errno. Offsets are those that the kernel
 * sends; in the file, the data may be elsewhere. limefs_append_allocate() returns -EOPNOTSUPP
 * for a moved file. */
int limefs_append_truncate(struct limefs *, struct limefs_node *, int fd, uint64_t bytes);
int limefs_append_allocate(struct limefs *, struct limefs_node *, int fd, int mode,
                           uint64_t offset, uint64_t bytes);

void limefs_append_free(struct limefs_node *); /* frees node->plain.append */

#endif
