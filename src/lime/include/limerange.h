/*
 * limerange.h - where in which file the bytes of a record in a mount are: what the mount tells
 * a program that would rather read them there by itself.
 *
 * A mount that nobody writes to gives it as the value of an extended attribute of the record,
 * or of a file that has the record's bytes as they are stored between others of its own, to
 * whoever may read the container. It is a hint: who uses it opens the path with rights of its
 * own, and compares device, inode, size and times with those that are told, then and after each
 * read.
 */
#ifndef LIMEFILE_RANGE_H
#define LIMEFILE_RANGE_H

#include "limeidentity.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* It is not listed: copies of a record are not to have it. */
#define LIMEFILE_RANGE_XATTR "user.limefs.range"

enum { /* handlers of signals have small stacks, and may open files */
       LIMEFILE_RANGE_PATH_MAX = 2048,                         /* with its end */
       LIMEFILE_RANGE_TEXT_MAX = LIMEFILE_RANGE_PATH_MAX + 512 /* of the value */
};

struct limefile_range {
    struct limefile_identity container;
    uint64_t offset, bytes; /* within its size */
    uint64_t head;          /* bytes of the mount's file before them */
    int has_job;            /* 1: the mount has a job, which reads what is not in memory */
    const char *path;       /* absolute, as the daemon sees it */
};

/* The value, without an end; its length, or -ERANGE if it is longer than
 * LIMEFILE_RANGE_TEXT_MAX. */
int limefile_range_encode(const struct limefile_range *, char text[LIMEFILE_RANGE_TEXT_MAX]);

/* Of a value of that length, which has room for one byte more; the path is there. 0, or
 * -EPROTO: it is not such a value. Safe in handlers of signals. */
int limefile_range_decode(char *text, size_t len, struct limefile_range *);

#endif
