/*
 * limerange.h - describe where the bytes of a record in a mount are, by file and offset, so
 * that a program can read them directly.
 *
 * A read-only mount has this range as an extended attribute of the record, and of an exported
 * file (.npy) that contains the record's stored bytes. Users with read permission on the
 * container can get the attribute. The range is a hint: a program opens the path with its own
 * permissions. After the open and after each read, it compares device, inode, size and times
 * with those in the range.
 */
#ifndef LIMEFILE_RANGE_H
#define LIMEFILE_RANGE_H

#include "limeidentity.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The attribute is not listed, so that copies of a record do not get it. */
#define LIMEFILE_RANGE_XATTR "user.limefs.range"

enum { /* small: limefs-run needs them on the stack, perhaps of a signal handler */
       LIMEFILE_RANGE_PATH_MAX = 2048,                         /* with the NUL */
       LIMEFILE_RANGE_TEXT_MAX = LIMEFILE_RANGE_PATH_MAX + 512 /* size of a buffer */
};

struct limefile_range {
    struct limefile_identity container;
    uint64_t offset, bytes; /* within the container's size */
    uint64_t prefix;        /* bytes in the mounted file before those of the record */
    int has_job;      /* 1: the mount has a job, which reads what is not in the page cache */
    const char *path; /* absolute, as the daemon sees it */
};

/* Formats the value, without a NUL. Returns its length, or -ERANGE if `text` is too small. */
int limefile_range_encode(const struct limefile_range *, char text[LIMEFILE_RANGE_TEXT_MAX]);

/* Parses a value of `len` bytes. `text` has room for one more byte; the range's `path` points
 * into it. Returns 0, or -EPROTO if the value is invalid. Async-signal-safe. */
int limefile_range_decode(char *text, size_t len, struct limefile_range *);

#endif
