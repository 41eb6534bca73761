/*
 * xattr.h - the extended attributes user.lime.* of records and containers; those that a
 * file or directory of the tree has itself pass through.
 */
#ifndef LIMEFS_XATTR_H
#define LIMEFS_XATTR_H

#include "limefs.h"
#include <sys/types.h>

/* Reading this attribute of a record verifies it, and gives the verdict; it is not listed, so
 * that nobody does it by chance. */
#define LIMEFS_VERIFY "user.lime.verify"

/* And this one reads it and gives what cksum(1) would print. */
#define LIMEFS_CKSUM "user.lime.cksum"

/* Like getxattr(2) and listxattr(2): the length, also for cap 0; -ERANGE, -ENODATA ... */
ssize_t limefs_xattr_get(struct limefs *, uint64_t id, const char *name, char *buf, size_t cap);
ssize_t limefs_xattr_list(struct limefs *, uint64_t id, char *buf, size_t cap);

/* An access control list, which to get takes no rights; the kernel itself asks for it, often,
 * to know what somebody may do. */
bool limefs_xattr_is_acl(const char *name);

/* Like setxattr(2); value NULL: removexattr(2). */
int limefs_xattr_set(struct limefs *, uint64_t id, const char *name, const char *value,
                     size_t len, int flags);

#endif
