/*
 * view.h - a container as it was at one moment: its index and its descriptor.
 *
 * A view never changes. When the container does, the next look-up makes a new view with a
 * new slot, so the kernel's cached pages and names of the old one are never taken for the
 * new. A view without users may be put to sleep (closed, its index freed); it wakes up only
 * if the container is still the same.
 */
#ifndef LIMEFS_VIEW_H
#define LIMEFS_VIEW_H

#include "inode.h"
#include "limefile.h"

struct limefs_view {
    uint32_t slot;
    uint64_t id;              /* never used twice */
    struct limefs_node *node; /* the container; a reference */
    struct stat st;           /* of the container then */
    struct limefs_stamp stamp;
    bool racy; /* modified so shortly before that the next change might not show */

    /* Guarded by fs->lock. */
    uint64_t lookups; /* the kernel's, of all records together */
    unsigned pins; /* files open and operations in progress; awake as long as there are any */
    struct limefs_view *newer, *older; /* in the list of those that are awake */

    /* Set while it is awake. */
    int fd;
    struct limefile_index *index;
};

/* The container as it is now, pinned. -errno: also when it is a container no longer. */
int limefs_view_current(struct limefs *, struct limefs_node *container, struct limefs_view **);

/* Nothing is there by that name: a view of what was there is of no use any more. */
void limefs_view_gone(struct limefs *, struct limefs_node *parent, const char *name);

/* Pins a view that the kernel knows, waking it up. -ESTALE if the container has changed. */
int limefs_view_pin(struct limefs *, struct limefs_view *);
void limefs_view_unpin(struct limefs *, struct limefs_view *);

/* The kernel looks up, or forgets, n of its records. */
void limefs_view_lookup(struct limefs *, struct limefs_view *, uint64_t n);
void limefs_view_forget(struct limefs *, struct limefs_view *, uint64_t n);

/* A record of a pinned view as it can be read right now. -ESTALE if the container was changed
 * in place so that it is not sure to be the same record. *checked, if not NULL, remembers
 * the last answer for an open file. */
int limefs_view_check(struct limefs_view *, const struct limefile_record *,
                      struct limefs_stamp *checked);

/* Closes and frees all views. */
void limefs_views_release(struct limefs *);

#endif
