/*
 * work.h - a work queue for requests that may take seconds. One thread handles them in order,
 * so that the threads of libfuse stay free for short requests.
 */
#ifndef LIMEFS_WORK_H
#define LIMEFS_WORK_H

#include "limefs.h"

#include <fuse_lowlevel.h>
#include <stdatomic.h>

struct limefs_work {
    struct limefs_work *next;
    fuse_req_t req;
    /* Called by the queue's thread: handles the request, removes its interrupt function
     * (libfuse) and replies. The queue frees the struct afterwards. */
    void (*run)(struct limefs *, struct limefs_work *);
    atomic_bool stop; /* the request was interrupted, or the mount ends: return soon */

    struct limefs_snapshot *snap; /* pinned */
    uint64_t ordinal;
    struct limefs_file *file; /* for an open */
    struct fuse_file_info info;
};

/* Start the thread, before the first request, and stop it, after the last one. 0 or -errno. */
int limefs_work_start(struct limefs *);
void limefs_work_stop(struct limefs *);

/* Appends a copy of the struct to the queue. Returns 0 or -ENOMEM. */
int limefs_work_submit(struct limefs *, const struct limefs_work *);

#endif
