/* dir.h - list directories of the source tree, containers and exports; thread-safe */
#ifndef LIMEFS_DIR_H
#define LIMEFS_DIR_H

#include "reply.h"

struct limefs_dir;

/* Opens the directory of that node id. Returns 0 or -errno. */
int limefs_dir_open(struct limefs *, uint64_t id, struct limefs_dir **);
void limefs_dir_close(struct limefs *, struct limefs_dir *);

/* Calls fsync() on the directory or the container. Returns 0 or -errno. */
int limefs_dir_sync(struct limefs_dir *);

void limefs_dirs_release(struct limefs *); /* closes all */

/* Called when a listing starts, at offset 0. limefs_dir_is_stale() returns true if the
 * directory is a container that may have changed since its snapshot. In this case,
 * limefs_dir_renew() switches to the current snapshot, if the thread's user may read it. */
bool limefs_dir_is_stale(struct limefs *, struct limefs_dir *);
void limefs_dir_renew(struct limefs *, struct limefs_dir *);

/* Returns true for a directory of the source tree. If `plus`, limefs_dir_read() may look names
 * up in such a directory, so the thread must have the rights of the request's user. */
bool limefs_dir_is_source(const struct limefs_dir *);

/* Fills buf with FUSE entries from `offset` on. If `plus`, they may have attributes, which
 * counts as a lookup (reply.h). Returns the number of bytes, 0 at the end, or -errno. */
ssize_t limefs_dir_read(struct limefs *, fuse_req_t, struct limefs_dir *, char *buf, size_t cap,
                        off_t offset, bool plus);

#endif
