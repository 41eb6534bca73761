/*
 * prefetch.h - plan which bytes of a container to read ahead, without doing the I/O.
 *
 * Memory for read-ahead is divided into slots. A slot holds one range of a container, at most
 * an extent (a fixed number of bytes) long, which one load fetches as a whole: the job into its
 * window (job_read.c), or threads of the daemon (file/readahead.c). A stream is a series of
 * nearly sequential requests. It is known by their positions, not by the process that reads:
 * the kernel sends the requests of one reader out of order and from several threads, and
 * several descriptors may share one pass over a record. After a stream has read `threshold`
 * bytes, its next bytes are read ahead. Loads double from 4 MiB to an extent. Then the number
 * of extents ahead grows until the reader finds its bytes ready. All other requests are read
 * locally and never wait.
 *
 * Offsets are offsets in the container. The functions take no lock: the caller must hold one
 * that guards the whole struct limefs_prefetch.
 */
#ifndef LIMEFS_PREFETCH_H
#define LIMEFS_PREFETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    LIMEFS_SLOTS_MAX = 48,
    LIMEFS_STREAMS_MAX = 32,
    LIMEFS_CHUNKS_MAX = 2, /* slots that one request may use */
};

enum limefs_extent_state {
    LIMEFS_EXTENT_EMPTY,
    LIMEFS_EXTENT_LOADING,
    LIMEFS_EXTENT_READY,
};

/* A slot. */
struct limefs_extent {
    enum limefs_extent_state state;
    bool dropped; /* its bytes are out of date; no request finds it */
    uint64_t snap_id;
    uint64_t from, to; /* range of the container */
    uint64_t used;     /* bytes of it that readers requested */
    unsigned holds;    /* replies that use its memory */
    double last_used;  /* time when its load was planned or ended, or of the last use */
};

struct limefs_stream {
    uint64_t snap_id;   /* id of the snapshot; 0: unused */
    uint64_t next;      /* end of the furthest request */
    uint64_t bytes;     /* number of bytes that the stream has read */
    uint64_t planned;   /* end of the last planned load */
    uint64_t load_size; /* length of the next load */
    unsigned depth;     /* extents to read ahead */
    double last_used;   /* time of the last request */
};

/* A range that this mount changes, from before its first byte changes until after its last byte
 * has. The begin of the change drops the slots that hold parts of the range, and until its end
 * no load of them begins. So no request finds bytes from before a finished change, or from
 * within a change. */
struct limefs_change {
    struct limefs_change *next;
    uint64_t snap_id;
    uint64_t from, to;
};

struct limefs_prefetch_stats {
    uint64_t loads, hits, waits, wasted_bytes;
};

struct limefs_prefetch {
    /* Bytes of a slot; bytes that a stream reads before its next ones are read ahead. */
    uint64_t extent, threshold;
    uint64_t slack; /* a slot with at most so many unrequested bytes counts as read */
    unsigned slots;
    struct limefs_extent slot[LIMEFS_SLOTS_MAX];
    struct limefs_stream stream[LIMEFS_STREAMS_MAX];
    struct limefs_change *changes;
    struct limefs_prefetch_stats stats;
};

/* A request of n bytes at `at`, in a record with data [begin, end). */
struct limefs_read_req {
    uint64_t snap_id; /* id of the snapshot */
    uint64_t begin, end;
    uint64_t at;
    size_t n;
    double now; /* seconds, of any clock */
};

/* window: bytes of all slots together. */
void limefs_prefetch_init(struct limefs_prefetch *, uint64_t window, uint64_t extent,
                          uint64_t threshold);

/* Empties all slots: none may be held, and no pending load may end later. Streams remain. */
void limefs_prefetch_reset(struct limefs_prefetch *);

/* Notes a request and plans at most max_loads loads of bytes that its stream will request.
 * Stores the slots to load, now in state LOADING, and returns their number: the caller loads
 * each and calls limefs_prefetch_end_load(). *is_stream: the request belongs to a stream and
 * may wait. */
int limefs_prefetch_plan(struct limefs_prefetch *, const struct limefs_read_req *,
                         int max_loads, int loads[LIMEFS_SLOTS_MAX], bool *is_stream);

/* Returns true if the request, already noted, is part of a stream that is read ahead. */
bool limefs_prefetch_is_stream(const struct limefs_prefetch *, const struct limefs_read_req *);

/* Finds the slots that hold the request's bytes, in order. Returns their number, or 0 if some
 * bytes are in no slot. Sets *ready to whether all these slots have finished loading. */
int limefs_prefetch_find(const struct limefs_prefetch *, const struct limefs_read_req *,
                         int slots[LIMEFS_CHUNKS_MAX], bool *ready);

/* Notes that a reader had to wait for a slot, so that its stream reads further ahead. */
void limefs_prefetch_note_wait(struct limefs_prefetch *, const struct limefs_read_req *);

/* The parts of a reply that are in slots, in order. */
struct limefs_chunks {
    int count;
    int slot[LIMEFS_CHUNKS_MAX];
    struct iovec iov[LIMEFS_CHUNKS_MAX];
};

/* Makes the chunks point to the request's bytes, in the slots of limefs_prefetch_find(), which
 * are held until limefs_prefetch_release(). Slot i is in memory at base + i * stride. */
void limefs_prefetch_hold(struct limefs_prefetch *, const struct limefs_read_req *,
                          const int *slots, int count, char *base, uint64_t stride,
                          struct limefs_chunks *);
void limefs_prefetch_release(struct limefs_prefetch *, struct limefs_chunks *);

/* Returns true if any of these bytes was dropped since they were held. */
bool limefs_prefetch_is_stale(const struct limefs_prefetch *, const struct limefs_chunks *);

/* Ends the load of a slot. `good`: its bytes were read; otherwise the slot becomes empty. */
void limefs_prefetch_end_load(struct limefs_prefetch *, int slot, bool good, double now);

/* Drops all loaded bytes of a snapshot, which are out of date. */
void limefs_prefetch_invalidate(struct limefs_prefetch *, uint64_t snap_id);

/* Begin and end a change, which the caller owns and must not move in between. The first one
 * returns true if it dropped bytes, also those of a load in progress. */
bool limefs_prefetch_begin_change(struct limefs_prefetch *, struct limefs_change *);
void limefs_prefetch_end_change(struct limefs_prefetch *, struct limefs_change *);

/* Returns true if any range of the snapshot is being changed. */
bool limefs_prefetch_is_changing(const struct limefs_prefetch *, uint64_t snap_id);

#endif
