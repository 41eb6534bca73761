/* attributes.c - copy a file's owner, mode, access control list and extended attributes */
#define _GNU_SOURCE
#include "limeedit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACL "system.posix_acl_access"

/* Returns true for user.* attributes and access control lists, which must be copied. All other
 * attributes belong to the system, so a failure to copy them is not an error. */
static bool is_required(const char *attribute)
{
    return strncmp(attribute, "user.", 5) == 0 ||
           strncmp(attribute, "system.posix_acl", 16) == 0;
}

/* Copies one attribute. Returns 0 also if it does not exist, or is not required and fails. */
static int copy_attribute(int from, int to, const char *attribute)
{
    int err = 0;
    ssize_t n = fgetxattr(from, attribute, NULL, 0);
    char *value = n < 0 ? NULL : malloc((size_t)n + 1);
    if (n >= 0 && !value)
        return -ENOMEM;
    if (n >= 0)
        n = fgetxattr(from, attribute, value, (size_t)n);
    if (n < 0 || fsetxattr(to, attribute, value, (size_t)n, 0) != 0)
        err = -errno;
    free(value);
    return err && is_required(attribute) && err != -ENODATA ? err : 0;
}

static int copy_attributes(int from, int to)
{
    ssize_t n = flistxattr(from, NULL, 0);
    if (n < 0)
        return errno == ENOTSUP ? 0 : -errno;
    char *list = malloc((size_t)n + 1);
    if (!list)
        return -ENOMEM;
    n = flistxattr(from, list, (size_t)n);
    int err = n < 0 ? -errno : 0;
    for (ssize_t at = 0; !err && at < n; at += (ssize_t)strlen(list + at) + 1)
        err = copy_attribute(from, to, list + at);
    free(list);
    return err;
}

int limefile_acl_copy(int from, int to)
{
    if (fgetxattr(from, ACL, NULL, 0) >= 0)
        return copy_attribute(from, to, ACL);
    /* `to` may have inherited an access control list from its directory. */
    if (fremovexattr(to, ACL) == 0)
        return 0;
    return errno == ENODATA || errno == ENOTSUP ? 0 : -errno;
}

int limefile_attributes_copy(int from, int to)
{
    struct stat old, new;
    if (fstat(from, &old) != 0 || fstat(to, &new) != 0)
        return -errno;
    if (new.st_uid != old.st_uid && fchown(to, old.st_uid, (gid_t)-1) != 0)
        return -errno;
    if (new.st_gid != old.st_gid && fchown(to, (uid_t)-1, old.st_gid) != 0)
        return -errno;
    int err = limefile_acl_copy(from, to);
    if (!err)
        err = copy_attributes(from, to);
    if (!err && fchmod(to, old.st_mode & 07777) != 0)
        err = -errno;
    return err;
}
