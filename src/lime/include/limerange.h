/*
 * limerange.h - tell a program in which file, and where in it, the bytes of a record of a mount
 * are, so that it can read them there itself.
 *
 * A read-only mount has this range as an extended attribute of the record, and of a file that
 * contains stored bytes of the record between bytes of its own. Users with read permission on
 * the container can get it. The range is a hint: a program opens the path with its own
 * permissions, and compares device, inode, size and times with the range's after the open and
 * after each read.
 */
#ifndef LIMEFILE_RANGE_H
#define LIMEFILE_RANGE_H

#include "limeidentity.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Not listed, so that copies of a record do not get it. */
#define LIMEFILE_RANGE_XATTR "user.limefs.range"

enum { /* Signal handlers have small stacks, and may open files. */
       LIMEFILE_RANGE_PATH_MAX = 2048,                         /* with the NUL */
       LIMEFILE_RANGE_TEXT_MAX = LIMEFILE_RANGE_PATH_MAX + 512 /* length of the value */
};

struct limefile_range {
    struct limefile_identity container;
    uint64_t offset, bytes; /* within the container's size */
    uint64_t prefix;        /* bytes of the mount's file before the record's */
    int has_job;      /* 1: the mount has a job, which reads what is not in the page cache */
    const char *path; /* absolute, as the daemon sees it */
};

/* Formats the value, without a NUL. Returns its length, or -ERANGE if that exceeds
 * LIMEFILE_RANGE_TEXT_MAX. */
int limefile_range_encode(const struct limefile_range *, char text[LIMEFILE_RANGE_TEXT_MAX]);

/* Parses a value of `len` bytes; `text` has room for one more byte, and `path` points into it.
 * Returns 0, or -EPROTO if the value is invalid. Async-signal-safe. */
int limefile_range_decode(char *text, size_t len, struct limefile_range *);

#endif
