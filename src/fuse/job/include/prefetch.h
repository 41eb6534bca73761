/*
 * prefetch.h - plan which bytes of a container to read ahead, without doing the I/O.
 *
 * Memory for read-ahead is divided into slots. A slot holds one range of a container, which is
 * at most an extent (a fixed number of bytes) long. A load fills a slot: the job loads into its
 * window (job_read.c), and threads of the daemon load into memory (file/readahead.c). A stream
 * is a series of nearly sequential requests. A request belongs to a stream by its position, not
 * by its process, because the kernel sends the requests of one reader out of order and from
 * several threads, and several descriptors may share one pass over a record. After a stream has
 * read `threshold` bytes, its next bytes are read ahead. The first load has 4 MiB; each further
 * one is twice as long, up to an extent. When the reader has to wait, the stream reads one more
 * extent ahead. Requests that belong to no stream never wait.
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
    uint64_t used;     /* number of its bytes that readers have requested */
    unsigned holds;    /* number of replies that use its memory now */
    double last_used;  /* latest time when its load was planned or ended, or a reply used it */
};

struct limefs_stream {
    uint64_t snap_id;   /* id of the snapshot; 0: the entry is free */
    uint64_t next;      /* end of the furthest request */
    uint64_t bytes;     /* number of bytes that the stream has read */
    uint64_t planned;   /* end of the last planned load */
    uint64_t load_size; /* length of the next load */
    unsigned depth;     /* number of extents to read ahead */
    double last_used;   /* time of the latest request */
};

/* A range that this mount is changing. The change begins before the first byte is written, and
 * ends after the last byte was written. The begin drops the slots that hold bytes of the range;
 * until the end, no load of such bytes is planned. So a request after the end finds no bytes
 * from before the change, and no mixture of old and new bytes. */
struct limefs_change {
    struct limefs_change *next;
    uint64_t snap_id;
    uint64_t from, to;
};

struct limefs_prefetch_stats {
    uint64_t loads, hits, waits, wasted_bytes;
};

struct limefs_prefetch {
    /* Bytes of the largest slot; bytes that a stream must read before read-ahead begins. */
    uint64_t extent, threshold;
    uint64_t slack; /* a slot of which at most this many bytes are unrequested counts as read */
    unsigned slots;
    struct limefs_extent slot[LIMEFS_SLOTS_MAX];
    struct limefs_stream stream[LIMEFS_STREAMS_MAX];
    struct limefs_change *changes;
    struct limefs_prefetch_stats stats;
};

/* A request for n bytes at offset `at`, in a record whose data is at [begin, end). */
struct limefs_read_req {
    uint64_t snap_id; /* id of the snapshot */
    uint64_t begin, end;
    uint64_t at;
    size_t n;
    double now; /* time of the request in seconds, from the same clock in all requests */
};

/* window: the number of bytes of all slots together. */
void limefs_prefetch_init(struct limefs_prefetch *, uint64_t window, uint64_t extent,
                          uint64_t threshold);

/* Empties all slots but keeps the streams. No slot may be held, no load may be under way. */
void limefs_prefetch_reset(struct limefs_prefetch *);

/* Notes a request and plans at most max_loads loads of bytes that its stream will request.
 * Stores the slots to load in `loads`, marks them as LOADING, and returns their number. The
 * caller then loads each slot and calls limefs_prefetch_end_load() for it. Sets *is_stream to
 * whether the request belongs to a stream, so that it may wait for its slots. */
int limefs_prefetch_plan(struct limefs_prefetch *, const struct limefs_read_req *,
                         int max_loads, int loads[LIMEFS_SLOTS_MAX], bool *is_stream);

/* Returns true if a request that was noted belongs to a stream that is read ahead. */
bool limefs_prefetch_is_stream(const struct limefs_prefetch *, const struct limefs_read_req *);

/* Finds the slots, in order, that hold the request's bytes or are being loaded with them. Sets
 * *ready to whether all of them are loaded. Returns the number of slots, or 0 if some bytes are
 * in no slot, or the request needs more than LIMEFS_CHUNKS_MAX slots. */
int limefs_prefetch_find(const struct limefs_prefetch *, const struct limefs_read_req *,
                         int slots[LIMEFS_CHUNKS_MAX], bool *ready);

/* Notes that the request had to wait for a slot, so that its stream reads further ahead. */
void limefs_prefetch_note_wait(struct limefs_prefetch *, const struct limefs_read_req *);

/* The bytes of a reply, in order: part i is at iov[i], in the memory of slot[i]. */
struct limefs_chunks {
    int count;
    int slot[LIMEFS_CHUNKS_MAX];
    struct iovec iov[LIMEFS_CHUNKS_MAX];
};

/* Makes the chunks point to the request's bytes, for which limefs_prefetch_find() has found
 * `slots`. Holds these until limefs_prefetch_release(). Slot i is at base + i * stride. */
void limefs_prefetch_hold(struct limefs_prefetch *, const struct limefs_read_req *,
                          const int *slots, int count, char *base, uint64_t stride,
                          struct limefs_chunks *);
void limefs_prefetch_release(struct limefs_prefetch *, struct limefs_chunks *);

/* Returns true if any slot of the chunks was dropped after limefs_prefetch_hold(). */
bool limefs_prefetch_is_stale(const struct limefs_prefetch *, const struct limefs_chunks *);

/* Ends the load of a slot. good: its bytes were read; if false, the slot becomes empty. */
void limefs_prefetch_end_load(struct limefs_prefetch *, int slot, bool good, double now);

/* Drops all slots of a snapshot, because their bytes are out of date. */
void limefs_prefetch_invalidate(struct limefs_prefetch *, uint64_t snap_id);

/* Begin and end a change. The caller owns the struct and must not move it between the two
 * calls. The first one returns true if it dropped any slot, loaded or being loaded. */
bool limefs_prefetch_begin_change(struct limefs_prefetch *, struct limefs_change *);
void limefs_prefetch_end_change(struct limefs_prefetch *, struct limefs_change *);

/* Returns true if any range of the snapshot is being changed. */
bool limefs_prefetch_is_changing(const struct limefs_prefetch *, uint64_t snap_id);

#endif
