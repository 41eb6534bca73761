/* dir.h - reads directories of the source tree, of containers and of exports; thread-safe */
#ifndef LIMEFS_DIR_H
#define LIMEFS_DIR_H

#include "reply.h"

struct limefs_dir;

/* Opens the directory with that node id, with the caller's rights. Returns 0 or -errno. */
int limefs_dir_open(struct limefs *, uint64_t id, struct limefs_dir **);
void limefs_dir_close(struct limefs *, struct limefs_dir *);

/* Calls fsync() on the directory or the container. Returns 0 or -errno. */
int limefs_dir_sync(struct limefs_dir *);

void limefs_dirs_release(struct limefs *); /* closes all */

/* Called when a listing starts, at offset 0. limefs_dir_is_stale() returns true if the listed
 * snapshot may not show the container as it is now; limefs_dir_renew() then switches to the
 * current snapshot, if the caller may read it. */
bool limefs_dir_is_stale(struct limefs *, struct limefs_dir *);
void limefs_dir_renew(struct limefs *, struct limefs_dir *);

/* True for a directory of the source tree: limefs_dir_read() with `plus` may look names up in
 * it, so the thread must have the caller's rights. */
bool limefs_dir_is_source(const struct limefs_dir *);

/* Fills buf with entries after `offset`, in FUSE's format. With `plus` they may have
 * attributes, and then take a lookup (reply.h). Returns the number of bytes, 0 at the end, or
 * -errno. */
ssize_t limefs_dir_read(struct limefs *, fuse_req_t, struct limefs_dir *, char *buf, size_t cap,
                        off_t offset, bool plus);

#endif
