/*
 * job_internal.h - the state of the connection to a job, shared by the thread that owns it
 * (connection.c), the containers that the job has open (job_files.c), readers (job_read.c) and
 * writers (write_buffers.c).
 */
#ifndef LIMEFS_JOB_INTERNAL_H
#define LIMEFS_JOB_INTERNAL_H

#include "prefetch.h"
#include "job.h"
#include "launch.h"
#include "limejob.h"
#include "range_set.h"
#include "write_buffers.h"

#include <stdatomic.h>

enum {
    LIMEFS_JOB_FILES_MAX = 64, /* containers that the job has open for this mount */
    LIMEFS_JOB_LINE_MAX = 512, /* bytes of a line that the job's processes print */
};

enum limefs_job_file_state {
    LIMEFS_JOB_FILE_NONE,
    LIMEFS_JOB_FILE_PREPARING, /* the daemon examines the container, without the lock */
    LIMEFS_JOB_FILE_OPENING,   /* the open request is sent */
    LIMEFS_JOB_FILE_OPEN,
    LIMEFS_JOB_FILE_REFUSED,
    LIMEFS_JOB_FILE_TO_CLOSE, /* to be closed when the job has room for the request */
    LIMEFS_JOB_FILE_CLOSING,  /* the close request is sent */
};

/* A container that the job has open or is to open. Times are of limefs_clock_seconds(). */
struct limefs_job_file {
    enum limefs_job_file_state state;
    uint64_t snap_id;
    bool writes;     /* a container open for reading and for writing has two files */
    uint32_t number; /* of the open file in requests */
    uint64_t bytes;  /* its length in the open request */
    struct limefile_identity identity; /* its identity in the open request */
    bool is_wrong_file;                /* the container had changed when the reply came */
    bool changed; /* this mount has changed the container since the open request */
    uint64_t changed_from, changed_to; /* in this range: a load of it may return old bytes */
    bool replaced;                     /* another file took its name during the open request */
    unsigned loads;                    /* requests under way: loads, writes, syncs */
    bool unsynced;                     /* ranks have written data that is not on the disk yet */
    unsigned syncs;                    /* under way */
    double last_used;
    double paused_until; /* no loads before this time: the job could not read it */
};

static inline bool limefs_job_file_is_opening(const struct limefs_job_file *file)
{
    return file->state == LIMEFS_JOB_FILE_PREPARING || file->state == LIMEFS_JOB_FILE_OPENING;
}

static inline bool limefs_job_file_is_closing(const struct limefs_job_file *file)
{
    return file->state == LIMEFS_JOB_FILE_TO_CLOSE || file->state == LIMEFS_JOB_FILE_CLOSING;
}

/* A write buffer (write_buffers.c): a slot in the window's second half, for one container. */
enum limefs_write_buffer_state {
    LIMEFS_BUFFER_EMPTY,
    LIMEFS_BUFFER_FILLING,
    LIMEFS_BUFFER_SENT,   /* the job writes its bytes */
    LIMEFS_BUFFER_FAILED, /* the job has not written them */
    LIMEFS_BUFFER_LOCAL,  /* the daemon writes them */
};

enum {
    LIMEFS_BUFFERS_MAX = 32,
};

struct limefs_write_buffer {
    enum limefs_write_buffer_state state;
    struct limefs_written *written; /* container of the bytes */
    uid_t uid;                      /* user whose rights the job uses */
    struct limefs_change change;    /* lasts until the buffer is empty */
    uint64_t from, to;              /* range in the container */
    struct limefs_range_set filled; /* bytes that it has so far */
    unsigned copies;                /* number of threads that copy bytes into it now */
    double last_used;               /* time when it was sent, or of the last copy */
};

enum {
    LIMEFS_LATE_WRITES_MAX = 64,
};

/* A range that ranks of a lost job on other hosts may still write to, until a deadline. */
struct limefs_late_write {
    uint64_t snap_id; /* 0: all bytes of all snapshots */
    uint64_t from, to;
    double until;
};

/* A SYNC request, on the stack of the thread that waits for its reply. */
struct limefs_job_sync {
    struct limefs_job_sync *next;
    uint64_t snap_id;
    uint32_t tag; /* the lower half of the request's tag */
    bool done;    /* the reply came, with this code */
    int code;
    double sent_at;
};

/* The kind of a request, in the upper half of its tag and of the reply's. The lower half is: */
enum limefs_tag {
    LIMEFS_TAG_OPEN = 1, /* index of the file */
    LIMEFS_TAG_LOAD,     /* number of the slot */
    LIMEFS_TAG_CLOSE,    /* index of the file */
    LIMEFS_TAG_STORE,    /* index of the write buffer */
    LIMEFS_TAG_SYNC,     /* number of the sync */
};

static inline uint64_t limefs_job_tag(enum limefs_tag kind, unsigned number)
{
    return (uint64_t)kind << 32 | number;
}

enum limefs_job_state {
    LIMEFS_JOB_ABSENT, /* the thread looks for a job, or pauses before the next try */
    LIMEFS_JOB_STARTING,
    LIMEFS_JOB_SERVING,
};

struct limefs_job {
    struct limefs *fs;
    pthread_t thread;
    struct limefs_lock lock; /* guards all members up to `launch` */
    pthread_cond_t changed;  /* a reply came, a buffer became free, the job was lost ... */
    atomic_bool stopping;
    enum limefs_job_state state;
    struct limejob_hello_reply greeting;
    struct limejob_channel channel;
    struct limejob_window window;
    bool broken; /* nothing more is sent; the thread will disconnect */
    struct limefs_job_file files[LIMEFS_JOB_FILES_MAX];
    double load_sent[LIMEFS_SLOTS_MAX]; /* when each load under way was requested */
    double last_reply;                  /* when the job last answered */
    unsigned in_flight;                 /* requests without a reply */
    unsigned waiting_readers;
    double last_cleanup; /* when unused files were last closed */
    unsigned holds;      /* replies that use the window */
    struct limefs_prefetch prefetch;
    struct limefs_write_buffer buffers[LIMEFS_BUFFERS_MAX];
    unsigned buffer_count;
    unsigned buffer_waiters; /* threads that wait until a buffer is not in use */
    struct limefs_job_sync *syncs;
    uint32_t sync_tag;
    double synced_from, synced_to; /* begin and end of the last answered SYNC */
    struct limefs_late_write late_writes[LIMEFS_LATE_WRITES_MAX];
    unsigned late_count;
    uint64_t stored_bytes; /* written through the job */
    /* Bytes read through the job; loads that failed; number of connections so far. */
    uint64_t forwarded_bytes, failed_loads, connections;
    char failure[LIMEJOB_TEXT_MAX]; /* why no job serves, or "" */

    struct limefs_launch launch;      /* used by the thread only */
    char output[LIMEFS_JOB_LINE_MAX]; /* printed by the job, not yet split into lines */
    size_t output_len;
};

/* ---- job_files.c: call with the lock held ---- */

/* Marks the connection as failed: nothing more is sent, and its thread will disconnect. For
 * data that ranks on other hosts had not synced, the snapshot's next sync reports an error. */
void limefs_job_mark_broken(struct limefs_job *);

/* Sends a request, unless the connection is broken. Marks it as broken if that fails. */
void limefs_job_send(struct limefs_job *, const struct limejob_packet *);

/* Returns the offset in the window of the fence (limejob.h), with which the daemon cancels the
 * writes that it requested: ranks on this host check it before they write. */
uint64_t limefs_job_fence_offset(const struct limefs_job *);

/* Returns true if the reply's code means: the job is busy, retry after another reply. */
bool limefs_job_is_busy(const struct limefs_job *, int code);

/* Returns the snapshot's file for reading or writing, in any state. If it has none, sends a
 * request to open one, for which this releases the lock in between. NULL: try again later, as
 * there is no room, the job was lost, or a container to be read is just being changed. */
struct limefs_job_file *limefs_job_file_open(struct limefs_job *,
                                             const struct limefs_snapshot *, bool writes);

/* Returns the file of the snapshot that the job has open for writing, or NULL. */
struct limefs_job_file *limefs_job_find_written_file(struct limefs_job *,
                                                     const struct limefs_snapshot *);

/* Returns the file that loads of the snapshot with this id use, or NULL. */
struct limefs_job_file *limefs_job_find_read_file(struct limefs_job *, uint64_t snap_id);

/* Returns true if loads of these bytes return the current data. Otherwise this closes the file
 * as soon as possible, and a later request opens it again. */
bool limefs_job_file_is_current(struct limefs_job *, struct limefs_job_file *,
                                const struct limefs_snapshot *, uint64_t from, uint64_t to);

/* Sends the close requests for which there was no room. */
void limefs_job_send_closes(struct limefs_job *);

/* Closes files that were not used for a while, and lets refused ones be requested again. */
void limefs_job_close_unused_files(struct limefs_job *, double now);

/* ---- handlers of replies (job_files.c, job_read.c, write_buffers.c): -EPROTO if the reply is
 * not valid ---- */

int limefs_job_on_open(struct limefs_job *, unsigned index, struct limejob_packet *reply);
int limefs_job_on_close(struct limefs_job *, unsigned index, struct limejob_packet *reply);
int limefs_job_on_load(struct limefs_job *, unsigned slot, struct limejob_packet *reply);
int limefs_job_on_store(struct limefs_job *, unsigned buffer, struct limejob_packet *reply);
int limefs_job_on_sync(struct limefs_job *, unsigned number, struct limejob_packet *reply);

/* ---- job_timeout.c: call with the lock held ---- */

/* Returns how many seconds after it was sent a write request expires: ranks then ignore it. */
double limefs_job_lease_seconds(const struct limefs_job *);

/* Returns true if the job must be given up: a request exceeds its time limit and the job
 * answers no other request either, or a request exceeds a multiple of its limit. A SYNC, and
 * requests that were sent after it and must wait for it, have more time. */
bool limefs_job_is_stalled(const struct limefs_job *, double now);

/* ---- job_changes.c: call with the lock held ---- */

/* Like limefs_change_begin() and limefs_change_end(), but do not wait for late writes. */
void limefs_job_change_begin(struct limefs_job *, struct limefs_change *);
void limefs_job_change_end(struct limefs_job *, struct limefs_snapshot *,
                           struct limefs_change *);

/* limefs_late_add() notes that ranks of a lost job may still write to a range until `until`. A
 * thread that wants to change these bytes first waits until then by limefs_late_wait(). If it
 * then waits for anything else, it must check again: the job may have been lost since. */
void limefs_late_add(struct limefs_job *, uint64_t snap_id, uint64_t from, uint64_t to,
                     double until);
bool limefs_late_possible(struct limefs_job *, uint64_t snap_id, uint64_t from, uint64_t to);
void limefs_late_wait(struct limefs_job *, uint64_t snap_id, uint64_t from, uint64_t to);

/* ---- write_buffers.c: call with the lock held ---- */

/* Writes to the containers what a lost job has not written. Called before the window, which
 * holds the bytes, is released. */
void limefs_write_buffers_write_out(struct limefs_job *);

#endif
