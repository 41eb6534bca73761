/*
 * forward.h - plans which bytes of a container are fetched before they are asked for; pure, no
 * I/O.
 *
 * Memory for what is fetched is cut into slots. A slot holds a range of a container, of at most
 * an extent, which is fetched as a whole: by the job into its window (read.c), or by threads of
 * the daemon (file/ahead.c). Streams are seen by where requests lie, not by who makes them: the
 * kernel's requests for one reader come out of order, by several threads, and several
 * descriptors may share in one pass over a record. A stream that has gone on for `from` bytes
 * is fetched ahead of; loads double from 4 MiB to an extent, then go so many extents ahead as
 * it takes that the reader finds its bytes there. All else is read locally, and never waits.
 *
 * Offsets are in the container. One lock, the caller's, guards all of it.
 */
#ifndef LIMEFS_FORWARD_H
#define LIMEFS_FORWARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    LIMEFS_SLOTS_MAX = 48,
    LIMEFS_STREAMS_MAX = 32,
    LIMEFS_PIECES_MAX = 2, /* slots that one request may lie in */
};

enum limefs_extent_state {
    LIMEFS_EXTENT_EMPTY,
    LIMEFS_EXTENT_LOADING,
    LIMEFS_EXTENT_READY,
};

struct limefs_extent {
    enum limefs_extent_state state;
    bool dropped; /* its bytes are out of date; nobody finds it */
    uint64_t view;
    uint64_t from, to;
    uint64_t used;  /* bytes of it that were asked for */
    unsigned holds; /* replies that are being given out of it */
    double since;   /* when it was asked for, or last used */
};

struct limefs_flow {
    uint64_t view;  /* 0: none */
    uint64_t next;  /* the end of the furthest request */
    uint64_t run;   /* bytes that it has gone on for */
    uint64_t ahead; /* up to here it has been asked for */
    uint64_t size;  /* of the next load */
    unsigned depth; /* extents to be ahead */
    double since;   /* its last request */
};

/* Bytes that are being changed, from before the first of them is until after the last. While
 * that lasts, they are not fetched; and what was fetched of them is dropped when it begins. So
 * nothing is ever found that is older than a change that has ended, or that saw half of one. */
struct limefs_change {
    struct limefs_change *next;
    uint64_t view;
    uint64_t from, to;
};

struct limefs_forward_stats {
    uint64_t loads, hits, waits, wasted_bytes;
};

struct limefs_forward {
    uint64_t extent, from; /* bytes */
    uint64_t slack;        /* bytes of a slot that may be left: read locally, at its ends */
    unsigned slots;
    struct limefs_extent slot[LIMEFS_SLOTS_MAX];
    struct limefs_flow flow[LIMEFS_STREAMS_MAX];
    struct limefs_change *changes;
    struct limefs_forward_stats stats;
};

/* A request of n bytes at `at`, in a record whose data are [begin, end). */
struct limefs_want {
    uint64_t view; /* its id */
    uint64_t begin, end;
    uint64_t at;
    size_t n;
    double now; /* seconds of any clock */
};

void limefs_forward_init(struct limefs_forward *, uint64_t window, uint64_t extent,
                         uint64_t from);

/* Forgets all slots, after the job has gone; none may be held. Streams go on. */
void limefs_forward_reset(struct limefs_forward *);

/* Takes note of a request. Which slots are to be loaded because of it: their numbers, LOADING
 * from now on, and how many; at most `most`. *follows: it is part of a stream, and so may wait
 * for what is loading. */
int limefs_forward_note(struct limefs_forward *, const struct limefs_want *, int most,
                        int loads[LIMEFS_SLOTS_MAX], bool *follows);

/* Whether the request, already noted, is part of a stream that is forwarded. */
bool limefs_forward_is_stream(const struct limefs_forward *, const struct limefs_want *);

/* Where the request's bytes are: the slots, in order, and how many; 0 if not all of them are
 * in slots. *ready: all are there, else some are still loading. */
int limefs_forward_find(const struct limefs_forward *, const struct limefs_want *,
                        int slots[LIMEFS_PIECES_MAX], bool *ready);

/* The reader had to wait for a slot: its stream should be further ahead. */
void limefs_forward_waited(struct limefs_forward *, const struct limefs_want *);

/* The parts of an answer that lie in slots. */
struct limefs_pieces {
    int count;
    int slot[LIMEFS_PIECES_MAX];
    struct iovec iov[LIMEFS_PIECES_MAX];
};

/* Fills pieces with the request's bytes, which stay in these slots until they are released.
 * Slot i is in memory at base + i * stride. */
void limefs_forward_hold(struct limefs_forward *, const struct limefs_want *, const int *slots,
                         int count, char *base, uint64_t stride, struct limefs_pieces *);
void limefs_forward_release(struct limefs_forward *, struct limefs_pieces *);

/* Returns true if any of these bytes is out of date by now. */
bool limefs_forward_is_stale(const struct limefs_forward *, const struct limefs_pieces *);

/* A load has ended. */
void limefs_forward_loaded(struct limefs_forward *, int slot, bool good, double now);

/* What there is of a view is out of date. */
void limefs_forward_drop(struct limefs_forward *, uint64_t view);

/* The change is the caller's, and stays where it is until it ends. True: something was dropped.
 */
bool limefs_forward_change_begin(struct limefs_forward *, struct limefs_change *);
void limefs_forward_change_end(struct limefs_forward *, struct limefs_change *);

/* Whether anything of the view is being changed. */
bool limefs_forward_is_changing(const struct limefs_forward *, uint64_t view);

#endif
