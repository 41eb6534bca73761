/*
 * state.h - what a container that is written to, its last record, and a record that is
 * collected beside it are in.
 *
 * Nothing else assigns these states. A step that no line here allows ends a daemon that was
 * built with LOCKS=1.
 */
#ifndef LIMEFS_STATE_H
#define LIMEFS_STATE_H

#include "store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the container; changed with the writer's lock alone ---- */

enum limefs_container_state {
    LIMEFS_CONTAINER_CLOSED, /* nobody uses it, or it could not be opened      -> OPEN */
    LIMEFS_CONTAINER_OPEN,   /* locked; view and editor have what it holds     -> BEHIND, CLOSED
                              */
    LIMEFS_CONTAINER_BEHIND, /* written anew, and could not be indexed yet     -> OPEN, LEFT */
    LIMEFS_CONTAINER_LEFT,   /* closed so: another view shows it, this one never again */
};

struct limefs_container {
    atomic_int is; /* enum limefs_container_state */
};

void limefs_container_opened(struct limefs_container *); /* or caught up with */
void limefs_container_rewritten(struct limefs_container *);
void limefs_container_closed(struct limefs_container *); /* in CLOSED, too */
bool limefs_container_is_behind(const struct limefs_container *);
bool limefs_container_is_left(const struct limefs_container *);

/* ---- its last record; with the lock alone, but for limefs_last_fails() ---- */

enum limefs_last_state {
    LIMEFS_LAST_SETTLED, /* committed, or there is none                -> GROWING, REFUSED */
    LIMEFS_LAST_GROWING, /* not committed yet, or longer than that     -> SETTLED, BROKEN */
    LIMEFS_LAST_BROKEN,  /* so, and it has a gap: it is not committed  -> all, when it is cut */
    LIMEFS_LAST_REFUSED, /* committed, and what was to be behind its end is not: nothing more is
                          * written, which would hide the gap      -> SETTLED; all, when cut */
};

struct limefs_last {
    atomic_int is;    /* enum limefs_last_state */
    atomic_int error; /* in BROKEN and REFUSED */
};

/* Another record is the last, or it was read anew, or its last user has gone. From any state.
 */
void limefs_last_settles(struct limefs_last *);
void limefs_last_grows(struct limefs_last *);   /* from SETTLED */
void limefs_last_commits(struct limefs_last *); /* from GROWING */

/* It has another length. `grows`: which is not committed; `emptied`: no gap is left. */
void limefs_last_cut(struct limefs_last *, bool grows, bool emptied);

/* What was written is not there. `beyond`: behind the committed end. The lock in any way. */
void limefs_last_fails(struct limefs_last *, int err, bool beyond);

bool limefs_last_is_growing(const struct limefs_last *); /* BROKEN, too */
int limefs_last_error(const struct limefs_last *);       /* 0, or why it has a gap */

/* ---- a record that is collected, once it is emptied or another length is set; with the lock
 * alone, but for _wrote() and _fails() ---- */

enum limefs_collected_state {
    LIMEFS_COLLECTED_NONE, /* written where it is              -> EMPTIED, WRITTEN, REFUSED */
    LIMEFS_COLLECTED_REFUSED, /* so; it was to grow, and could not      -> EMPTIED, WRITTEN, GAP
                               */
    LIMEFS_COLLECTED_EMPTIED, /* somebody is about to write             -> WRITTEN, PUT, GAP */
    LIMEFS_COLLECTED_WRITTEN, /* the container has other data           -> PUT, GAP */
    LIMEFS_COLLECTED_PUT,     /* the container has the same             -> WRITTEN, GAP */
    LIMEFS_COLLECTED_GAP, /* not what was written, and never put    -> WRITTEN, when emptied */
};

struct limefs_collected {
    atomic_int is; /* enum limefs_collected_state */
    atomic_int error;
};

/* It is `bytes` long then. */
void limefs_collected_begins(struct limefs_collected *, uint64_t bytes, bool emptied);
void limefs_collected_wrote(struct limefs_collected *);
void limefs_collected_cut(struct limefs_collected *, uint64_t before, uint64_t bytes);
void limefs_collected_puts(struct limefs_collected *); /* from EMPTIED and WRITTEN */
void limefs_collected_fails(struct limefs_collected *, int err, bool beyond);

bool limefs_collected_is(
    const struct limefs_collected *); /* there is a file: EMPTIED ... GAP */
bool limefs_collected_is_news(
    const struct limefs_collected *); /* which the container has not */
bool limefs_collected_is_empty(const struct limefs_collected *); /* EMPTIED */
int limefs_collected_error(const struct limefs_collected *); /* of REFUSED and GAP; else 0 */

/* ---- what is not on the disk; the lock in any way ---- */

/* After bytes were written, not before: somebody may just have synced what there was. (Of what
 * is gathered for the job, the store says it once more when it is in the container.) */
void limefs_sync_due(struct limefs_job_view *);

/* False: all is there already, and nobody is bringing it there. Then the end of it. */
bool limefs_sync_begins(struct limefs_job_view *);
void limefs_sync_ends(struct limefs_job_view *);

#endif
