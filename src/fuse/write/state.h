/*
 * state.h - the states of a container that is written to, of its last record, and of a record
 * whose new data are staged in a shadow file.
 *
 * No other code assigns these states. A transition that is not listed here ends a daemon that
 * was built with LOCKS=1.
 */
#ifndef LIMEFS_STATE_H
#define LIMEFS_STATE_H

#include "store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the container; changed with the writer's lock held exclusively ---- */

enum limefs_container_state {
    LIMEFS_CONTAINER_CLOSED,    /* no users, or opening failed -> OPEN */
    LIMEFS_CONTAINER_OPEN,      /* locked; snapshot up to date -> UNINDEXED, CLOSED */
    LIMEFS_CONTAINER_UNINDEXED, /* rewritten, not indexed yet  -> OPEN, ABANDONED */
    LIMEFS_CONTAINER_ABANDONED, /* closed in UNINDEXED: only another snapshot can show it */
};

struct limefs_container {
    atomic_int state; /* enum limefs_container_state */
};

void limefs_container_opened(struct limefs_container *); /* also after UNINDEXED */
void limefs_container_rewritten(struct limefs_container *);
void limefs_container_closed(struct limefs_container *); /* allowed in CLOSED, too */
bool limefs_container_is_behind(const struct limefs_container *);
bool limefs_container_is_left(const struct limefs_container *);

/* ---- its last record; call with the lock held exclusively, except limefs_last_fails() ---- */

enum limefs_last_state {
    LIMEFS_LAST_COMMITTED, /* committed, or no last record           -> GROWING, FAILED */
    LIMEFS_LAST_GROWING,   /* not committed yet, or longer than that -> COMMITTED, GAP */
    LIMEFS_LAST_GAP,       /* growing with a gap: not committed      -> all, when it is cut */
    LIMEFS_LAST_FAILED, /* committed; a write behind its end failed, and later ones must fail:
                            they would hide the gap -> COMMITTED; all, when cut */
};

struct limefs_last {
    atomic_int state; /* enum limefs_last_state */
    atomic_int error; /* in GAP and FAILED */
};

/* From any state: the last record is another one, was reindexed, or has no more users. */
void limefs_last_settles(struct limefs_last *);
void limefs_last_grows(struct limefs_last *);   /* from COMMITTED */
void limefs_last_commits(struct limefs_last *); /* from GROWING */

/* The length was changed. `grows`: and is not committed; `emptied`: no gap remains. */
void limefs_last_cut(struct limefs_last *, bool grows, bool emptied);

/* A write failed. `beyond`: behind the committed end. Call it with the lock in any mode. */
void limefs_last_fails(struct limefs_last *, int err, bool beyond);

bool limefs_last_is_growing(const struct limefs_last *); /* also in GAP */
int limefs_last_error(const struct limefs_last *);       /* 0, or the reason of a gap */

/* ---- staged data of a record that was emptied or gets another length. Hold the lock
 * exclusively, except for limefs_collected_wrote() and limefs_collected_fails(). ---- */

enum limefs_collected_state {
    LIMEFS_STAGING_NONE,    /* not staged, written in place    -> EMPTIED, WRITTEN, FAILED */
    LIMEFS_STAGING_FAILED,  /* not staged; its growth failed   -> EMPTIED, WRITTEN, GAP */
    LIMEFS_STAGING_EMPTIED, /* empty; a write will follow      -> WRITTEN, STORED, GAP */
    LIMEFS_STAGING_WRITTEN, /* the container has other data    -> STORED, GAP */
    LIMEFS_STAGING_STORED,  /* the container has the same data -> WRITTEN, GAP */
    LIMEFS_STAGING_GAP,     /* a write failed; never stored    -> WRITTEN, when emptied */
};

struct limefs_collected {
    atomic_int state; /* enum limefs_collected_state */
    atomic_int error;
};

/* Starts to stage a record, which is `bytes` long then. */
void limefs_collected_begins(struct limefs_collected *, uint64_t bytes, bool emptied);
void limefs_collected_wrote(struct limefs_collected *);
void limefs_collected_cut(struct limefs_collected *, uint64_t before, uint64_t bytes);
void limefs_collected_puts(struct limefs_collected *); /* from EMPTIED and WRITTEN */
void limefs_collected_fails(struct limefs_collected *, int err, bool beyond);

bool limefs_collected_is(const struct limefs_collected *); /* has a file: EMPTIED ... GAP */
bool limefs_collected_is_news(const struct limefs_collected *);  /* not in the container */
bool limefs_collected_is_empty(const struct limefs_collected *); /* EMPTIED */
int limefs_collected_error(const struct limefs_collected *);     /* in FAILED and GAP; else 0 */

/* ---- unsynced data; call with the lock held in any mode ---- */

/* Call it after bytes were written: a sync at the same time may not include them. (For gathered
 * bytes, the store notes it again when they are in the container.) */
void limefs_sync_due(struct limefs_job_view *);

/* Returns false if all data are on the disk and no other sync is under way. Call
 * limefs_sync_ends() in both cases. */
bool limefs_sync_begins(struct limefs_job_view *);
void limefs_sync_ends(struct limefs_job_view *);

#endif
