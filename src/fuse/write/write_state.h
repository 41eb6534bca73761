/*
 * write_state.h - the states of a container that is written to, of its last record, and of a
 * record whose new data are staged in a shadow file.
 *
 * No other code assigns these states. A daemon that was built with LOCKS=1 aborts at a
 * transition that is not listed here.
 */
#ifndef LIMEFS_WRITE_STATE_H
#define LIMEFS_WRITE_STATE_H

#include "write_buffers.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the container; changed with the writer's lock held exclusively ---- */

enum limefs_container_state {
    LIMEFS_CONTAINER_CLOSED,    /* no users, or opening failed -> OPEN */
    LIMEFS_CONTAINER_OPEN,      /* locked; snapshot up to date -> UNINDEXED, CLOSED */
    LIMEFS_CONTAINER_UNINDEXED, /* rewritten, not indexed yet  -> OPEN, ABANDONED */
    LIMEFS_CONTAINER_ABANDONED, /* closed while UNINDEXED: needs a new snapshot */
};

struct limefs_container {
    atomic_int state; /* enum limefs_container_state */
};

void limefs_container_opened(struct limefs_container *); /* also after UNINDEXED */
void limefs_container_rewritten(struct limefs_container *);
void limefs_container_closed(struct limefs_container *); /* allowed in CLOSED, too */
bool limefs_container_is_unindexed(const struct limefs_container *);
bool limefs_container_is_abandoned(const struct limefs_container *);

/* ---- its last record; call with the lock held exclusively, except limefs_last_fail() ---- */

enum limefs_last_state {
    LIMEFS_LAST_COMMITTED, /* committed, or no last record           -> GROWING, FAILED */
    LIMEFS_LAST_GROWING,   /* uncommitted, or longer than committed  -> COMMITTED, GAP */
    LIMEFS_LAST_GAP,       /* growing; a failed write left a gap     -> all, when truncated */
    LIMEFS_LAST_FAILED, /* committed; a write behind its end failed. Later writes must fail, or
                           they would hide the gap -> COMMITTED; all, when truncated */
};

struct limefs_last {
    atomic_int state; /* enum limefs_last_state */
    atomic_int error; /* in GAP and FAILED */
};

/* From any state, when the last record is another one, was reindexed, or has no more users. */
void limefs_last_reset(struct limefs_last *);
void limefs_last_begin_growth(struct limefs_last *); /* from COMMITTED */
void limefs_last_commit(struct limefs_last *);       /* from GROWING */

/* The length was set. `grows`: it is not committed; `emptied`: fell to 0, so no gap remains. */
void limefs_last_truncate(struct limefs_last *, bool grows, bool emptied);

/* A write failed. `beyond`: beyond the committed end. Call it with the lock in any mode. */
void limefs_last_fail(struct limefs_last *, int err, bool beyond);

bool limefs_last_is_growing(const struct limefs_last *); /* also in GAP */
int limefs_last_error(const struct limefs_last *);       /* 0, or the reason of a gap */

/* ---- staged data of a record that was emptied or gets another length. Hold the lock
 * exclusively, except for limefs_staging_write() and limefs_staging_fail(). ---- */

enum limefs_staging_state {
    LIMEFS_STAGING_NONE,    /* not staged, written in place    -> EMPTIED, WRITTEN, FAILED */
    LIMEFS_STAGING_FAILED,  /* not staged; its growth failed   -> EMPTIED, WRITTEN, GAP */
    LIMEFS_STAGING_EMPTIED, /* empty; a write will follow      -> WRITTEN, STORED, GAP */
    LIMEFS_STAGING_WRITTEN, /* the container has other data    -> STORED, GAP */
    LIMEFS_STAGING_STORED,  /* the container has the same data -> WRITTEN, GAP */
    LIMEFS_STAGING_GAP,     /* a write failed; never stored    -> WRITTEN, when emptied */
};

struct limefs_staging {
    atomic_int state; /* enum limefs_staging_state */
    atomic_int error;
};

/* Starts to stage a record's data, which are `bytes` long at first. */
void limefs_staging_begin(struct limefs_staging *, uint64_t bytes, bool emptied);
void limefs_staging_write(struct limefs_staging *); /* after a write to the shadow file */
void limefs_staging_truncate(struct limefs_staging *, uint64_t before, uint64_t bytes);
void limefs_staging_store(struct limefs_staging *); /* from EMPTIED and WRITTEN */
void limefs_staging_fail(struct limefs_staging *, int err, bool beyond);

bool limefs_is_staged(const struct limefs_staging *);        /* has a file: EMPTIED ... GAP */
bool limefs_staging_is_dirty(const struct limefs_staging *); /* not in the container */
bool limefs_staging_is_empty(const struct limefs_staging *); /* EMPTIED */
int limefs_staging_error(const struct limefs_staging *);     /* in FAILED and GAP; else 0 */

/* ---- unsynced data; call with the lock held in any mode ---- */

/* Call it after bytes were written, not before: a sync during the write may not include them.
 * (For gathered bytes, write_buffers.c sets the mark again when they are in the container.) */
void limefs_sync_mark_due(struct limefs_written *);

/* Returns true if the caller must sync; false if all data are on the disk and no other sync is
 * under way. The caller must call limefs_sync_end() in both cases. */
bool limefs_sync_begin(struct limefs_written *);
void limefs_sync_end(struct limefs_written *);

#endif
