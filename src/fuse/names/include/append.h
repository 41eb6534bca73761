/*
 * append.h - a file of the tree that is appended to, also below the mount, at the same time.
 *
 * A kernel that caches what is written places appended bytes by the length that it knows, and
 * sends them later; by then others may have appended below the mount. So as long as all who
 * have such a file open to write have it open to append, what the kernel sends beyond the end
 * that it knows is appended to what is there. Where that is somewhere else, the file is
 * "moved": what the kernel counts is translated, in both directions, for who has it open. As
 * soon as what they have written is there, whoever opens it gets another node
 * (limefs_node_stands()), of which the kernel reads what really is there.
 */
#ifndef LIMEFS_APPEND_H
#define LIMEFS_APPEND_H

#include "inode.h"

#include <sys/types.h>

/* Its file has been opened for writing, with these flags of open(2), and was like that: whether
 * it is taken for one that is appended to. It is closed. With fs->lock held. */
bool limefs_append_opened(struct limefs_node *, int flags, const struct limefile_identity *);
void limefs_append_closed(struct limefs_node *, bool appends);

/* One of its files has been given to close(2), of which the kernel tells at once; that it is
 * closed it tells later, and perhaps never: others may have the same file open. */
void limefs_append_flushed(struct limefs *, struct limefs_node *);

/* True if those who have it open for writing need it as the kernel knows it: with fs->lock
 * held. */
bool limefs_append_holds(const struct limefs_node *);

/* True if one whose length is not what the kernel was told may be opened all the same: the
 * kernel has none of its bytes; or it is to be appended to, and had its last change, *changed,
 * just now. Else the kernel, which asks twice, would be told each time that it has changed
 * again. */
bool limefs_append_may_open(struct limefs *, const struct limefs_node *, int flags,
                            const struct timespec *changed);

/* As pread and pwrite, all n bytes, as the kernel counts: how many, or -errno. */
ssize_t limefs_append_read(struct limefs_node *, int fd, void *buf, size_t n, uint64_t offset);
ssize_t limefs_append_write(struct limefs *, struct limefs_node *, int fd, const char *buf,
                            size_t n, uint64_t offset);

/* As ftruncate and fallocate. */
int limefs_append_cut(struct limefs *, struct limefs_node *, int fd, uint64_t bytes);
int limefs_append_allocate(struct limefs *, struct limefs_node *, int fd, int mode,
                           uint64_t offset, uint64_t bytes);

void limefs_append_free(struct limefs_node *); /* what it knows of the node */

#endif
