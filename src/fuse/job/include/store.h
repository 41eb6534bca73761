/*
 * store.h - what is written through the job: gathered into extents, in the second half of the
 * window.
 *
 * A stream of writes fills slots, each a run of the container up to the next multiple of an
 * extent. A slot that is full goes to the job, which writes it out, all ranks together; several
 * are under way while the next are filled. Whatever the job does not do, because it has gone or
 * failed, the daemon does itself, out of the slot: so a slot is given up only when its bytes
 * are in the container.
 */
#ifndef LIMEFS_STORE_H
#define LIMEFS_STORE_H

#include "spans.h"
#include "view.h"

#include <stdatomic.h>

/* A view that is written to, as the job sees it: part of its writer. */
struct limefs_job_view {
    struct limefs_view *view;
    int fd; /* the container, for what the job does not write; under the writer's lock */
    atomic_bool unsynced; /* bytes were written anywhere */
    atomic_int syncing;   /* who was about to bring them to the disk, and is not through */

    /* Under the job's lock. */
    int late;       /* what the store has met */
    double changed; /* when the container was last changed */
    uint64_t shape; /* counts what moves or cuts records; changed with the writer's lock alone,
                       too */
};

/* Sequential writes, where they are in the container: from the lowest to the highest byte so
 * far. A parcel would wait in vain for what lies before `begin`, and for what was not gathered,
 * but written at once. */
struct limefs_run {
    uint64_t begin, next, bytes;
    struct limefs_spans passed;
};

/* n bytes for byte `at` of the container: taken (1), or to be written by the caller (0), now
 * that nothing that is gathered is in its way; < 0: an error. The writer's lock is held,
 * shared. */
int limefs_store_put(struct limefs *, struct limefs_job_view *, struct limefs_run *,
                     const char *buf, size_t n, uint64_t at);

/* All that is gathered of bytes [from, to) is in the container, as far as others can see. With
 * the lock, in any way. 0 or an error that any of it has met, which is told once. */
int limefs_store_flush(struct limefs *, struct limefs_job_view *, uint64_t from, uint64_t to);

/* The same, and the ranks have brought theirs to the disk. The caller's own fsync() comes after
 * it. */
int limefs_store_sync(struct limefs *, struct limefs_job_view *);

/* The container is another file from now on: the job opens that one to write to it (link.c).
 * All was synced before; with the lock, alone. */
void limefs_store_moved(struct limefs *, const struct limefs_view *);

#endif
