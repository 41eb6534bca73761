/*
 * xattr.h - the extended attributes user.lime.* of records and containers. The attributes of
 * other files and directories of the source tree pass through.
 */
#ifndef LIMEFS_XATTR_H
#define LIMEFS_XATTR_H

#include "limefs.h"
#include <sys/types.h>

/* Reading this attribute verifies the record and returns the verdict. listxattr() omits it, so
 * that no program starts a verification by accident. */
#define LIMEFS_VERIFY_XATTR "user.lime.verify"

/* Reading this attribute reads the whole record and returns its sum as cksum(1) prints it. */
#define LIMEFS_CKSUM_XATTR "user.lime.cksum"

/* Like getxattr(2) and listxattr(2). Return the length, also if cap is 0, or a negative code
 * for limefs_errno(): -ERANGE, -ENODATA ... */
ssize_t limefs_xattr_get(struct limefs *, uint64_t id, const char *name, char *buf, size_t cap);
ssize_t limefs_xattr_list(struct limefs *, uint64_t id, char *buf, size_t cap);

/* True for the name of an access control list. Reading the list requires no rights, because the
 * kernel reads it often, to check the permissions of any user. */
bool limefs_xattr_is_acl(const char *name);

/* Like setxattr(2), or removexattr(2) if value is NULL. Returns 0 or a negative code. */
int limefs_xattr_set(struct limefs *, uint64_t id, const char *name, const char *value,
                     size_t len, int flags);

#endif
