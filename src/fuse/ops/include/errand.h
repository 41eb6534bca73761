/*
 * errand.h - requests that take seconds: done one after another by a thread of their own, so
 * that those that take no time always find one that serves them.
 */
#ifndef LIMEFS_ERRAND_H
#define LIMEFS_ERRAND_H

#include "limefs.h"

#include <fuse_lowlevel.h>
#include <stdatomic.h>

struct limefs_errand {
    struct limefs_errand *next;
    fuse_req_t req;
    /* Does it and replies; the errand is freed after it. */
    void (*run)(struct limefs *, struct limefs_errand *);
    atomic_bool stop; /* the caller has gone, or the mount ends: soon, please */

    struct limefs_view *view; /* pinned */
    uint64_t ordinal;
    struct limefs_file *file; /* of an open */
    struct fuse_file_info info;
};

/* Before the loop begins, and after it has ended. */
int limefs_errands_begin(struct limefs *);
void limefs_errands_end(struct limefs *);

/* Takes a copy. -ENOMEM. */
int limefs_errand_send(struct limefs *, const struct limefs_errand *);

#endif
