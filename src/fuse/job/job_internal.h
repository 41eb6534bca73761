/*
 * job_internal.h - the state of the connection to a job, for the files that use it: its thread
 * (connection.c), opening containers (job_files.c), reading (job_read.c) and writing
 * (write_buffers.c).
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
    LIMEFS_JOB_FILE_PREPARING, /* the daemon examines the container, with the lock released */
    LIMEFS_JOB_FILE_OPENING,   /* the open request was sent, but has no reply yet */
    LIMEFS_JOB_FILE_OPEN,
    LIMEFS_JOB_FILE_REFUSED,  /* the job, or the daemon, could not open the container */
    LIMEFS_JOB_FILE_TO_CLOSE, /* to be closed when the job has room for the request */
    LIMEFS_JOB_FILE_CLOSING,  /* the close request was sent, but has no reply yet */
};

/* A container that the job has open or is to open. Times are of limefs_clock_seconds(). */
struct limefs_job_file {
    enum limefs_job_file_state state;
    uint64_t snap_id;
    bool writes; /* open for writing; a container that is also read has a second file */
    bool writes_collectively;
    uint32_t number;                   /* the job's number for the open file */
    uint64_t bytes;                    /* length of the container in the open request */
    struct limefile_identity identity; /* identity of the container in the open request */
    bool is_wrong_file;                /* the container had changed when the reply came */
    bool changed; /* this mount has changed the container since the open request */
    uint64_t changed_from, changed_to; /* range of the changes; loads of it may get old bytes */
    bool replaced;                     /* another file took its name during the open request */
    unsigned loads;                    /* number of loads, writes and syncs under way */
    bool unsynced;                     /* ranks have written data that is not on the disk yet */
    unsigned syncs;                    /* number of syncs under way */
    double last_used;
    double paused_until; /* no loads before this time, because a load has failed */
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
    LIMEFS_BUFFER_SENT,   /* the job is writing its bytes */
    LIMEFS_BUFFER_FAILED, /* the job cannot write its bytes; a thread of the daemon will */
    LIMEFS_BUFFER_LOCAL,  /* a thread of the daemon is writing its bytes */
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
    struct limefs_range_set filled; /* ranges whose bytes it has, or is just receiving */
    unsigned copies;                /* number of threads that copy bytes into it now */
    double last_used;               /* time when it was sent or, until then, of the last copy */
};

enum {
    LIMEFS_LATE_WRITES_MAX = 64,
};

/* A range that ranks on other hosts, of a job that is lost, may still write to. */
struct limefs_late_write {
    uint64_t snap_id; /* 0: all bytes of all snapshots */
    uint64_t from, to;
    double until; /* no writes after this time */
};

/* A SYNC request, on the stack of the thread that waits for its reply. */
struct limefs_job_sync {
    struct limefs_job_sync *next;
    uint64_t snap_id;
    uint32_t tag; /* the lower half of the request's tag */
    bool done;    /* the reply came */
    int code;     /* the reply's */
    double sent_at;
};

/* The upper half of a request's tag: its kind. (The reply has the same tag.) The lower half: */
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
    LIMEFS_JOB_ABSENT,   /* the thread disconnects, or pauses before the next try */
    LIMEFS_JOB_STARTING, /* the thread starts or looks for a job, and connects */
    LIMEFS_JOB_SERVING,
};

struct limefs_job {
    struct limefs *fs;
    pthread_t thread;
    struct limefs_lock lock; /* guards all members before `launch` */
    pthread_cond_t changed;  /* a reply came, a buffer became free, the job was lost ... */
    atomic_bool stopping;
    enum limefs_job_state state;
    struct limejob_hello_reply greeting;
    struct limejob_channel channel;
    struct limejob_window window;
    bool broken; /* no more requests are sent; the thread will disconnect */
    struct limefs_job_file files[LIMEFS_JOB_FILES_MAX];
    double load_sent[LIMEFS_SLOTS_MAX]; /* when the load of each slot was requested */
    double last_reply;                  /* time of the latest reply */
    unsigned in_flight;                 /* number of requests without a reply */
    unsigned waiting_readers;
    double last_cleanup; /* when limefs_job_close_unused_files() last examined the files */
    unsigned holds;      /* number of reads whose reply uses the window now */
    struct limefs_prefetch prefetch;
    struct limefs_write_buffer buffers[LIMEFS_BUFFERS_MAX];
    unsigned buffer_count;
    unsigned buffer_waiters; /* number of threads that wait for a change of a buffer */
    struct limefs_job_sync *syncs;
    uint32_t sync_tag;
    double synced_from, synced_to; /* when the SYNC that was answered last began and ended */
    struct limefs_late_write late_writes[LIMEFS_LATE_WRITES_MAX];
    unsigned late_count;
    uint64_t stored_bytes; /* number of bytes written through the job */
    /* Numbers of bytes read through the job, of loads that failed, of connections so far. */
    uint64_t forwarded_bytes, failed_loads, connections;
    char failure[LIMEJOB_TEXT_MAX]; /* why no job serves, or "" */

    /* From here on, only `thread` uses the members. */
    struct limefs_launch launch;
    char output[LIMEFS_JOB_LINE_MAX]; /* printed by the job, not yet split into lines */
    size_t output_len;
};

/* ---- job_files.c: call with the lock held ---- */

/* Marks the connection as broken: no more requests are sent, and its thread will disconnect. If
 * ranks on other hosts have unsynced data, the next sync of its snapshot reports an error. */
void limefs_job_mark_broken(struct limefs_job *);

/* Sends a request, unless the connection is broken. A failure marks the connection broken. */
void limefs_job_send(struct limefs_job *, const struct limejob_packet *);

/* Returns the offset of the fence (limejob.h) in the window. The daemon sets the fence to
 * cancel its write requests: ranks on this host check it before they write. */
uint64_t limefs_job_fence_offset(const struct limefs_job *);

/* Returns true if a reply's code means: the job is busy, retry after another reply. */
bool limefs_job_is_busy(const struct limefs_job *, int code);

/* Returns the file with which the job reads or (`writes`) writes the snapshot's container, in
 * any state. If it does not exist, sends an open request, for which this releases the lock.
 * Returns NULL if the caller must try again later: there is no room for a file or a request,
 * the job was lost, or this mount has just changed a container that is to be read. */
struct limefs_job_file *limefs_job_file_open(struct limefs_job *,
                                             const struct limefs_snapshot *, bool writes);

/* Returns the snapshot's file for writing if the job has it open, or NULL. */
struct limefs_job_file *limefs_job_find_written_file(struct limefs_job *,
                                                     const struct limefs_snapshot *);

/* Returns the file that loads of the snapshot with this id use, or NULL. */
struct limefs_job_file *limefs_job_find_read_file(struct limefs_job *, uint64_t snap_id);

/* Returns true if loads of these bytes return the current data. If not, closes the file, unless
 * a load is under way or the container has just changed; a later request opens it again. */
bool limefs_job_file_is_current(struct limefs_job *, struct limefs_job_file *,
                                const struct limefs_snapshot *, uint64_t from, uint64_t to);

/* Sends the close requests of files in state TO_CLOSE, as far as there is room. */
void limefs_job_send_closes(struct limefs_job *);

/* Closes files that were not used for a while. Forgets refused files, which may be retried. */
void limefs_job_close_unused_files(struct limefs_job *, double now);

/* ---- handlers of replies: return 0, or -EPROTO if the reply is not valid ---- */

int limefs_job_on_open(struct limefs_job *, unsigned index, struct limejob_packet *reply);
int limefs_job_on_close(struct limefs_job *, unsigned index, struct limejob_packet *reply);
int limefs_job_on_load(struct limefs_job *, unsigned slot, struct limejob_packet *reply);
int limefs_job_on_store(struct limefs_job *, unsigned buffer, struct limejob_packet *reply);
int limefs_job_on_sync(struct limefs_job *, unsigned number, struct limejob_packet *reply);

/* ---- job_timeout.c: call with the lock held ---- */

/* Returns the seconds after which a write request expires. Ranks ignore an expired request. */
double limefs_job_lease_seconds(const struct limefs_job *);

/* Returns true if the job must be given up: a request exceeds its time limit while the job
 * answers no other request, or a request exceeds a multiple of its limit. A SYNC has a higher
 * limit, and so have requests that were sent after it, because they must wait for it. */
bool limefs_job_is_stalled(const struct limefs_job *, double now);

/* ---- job_changes.c: call with the lock held ---- */

/* Like limefs_change_begin() and limefs_change_end(), but do not wait for late writes. */
void limefs_job_change_begin(struct limefs_job *, struct limefs_change *);
void limefs_job_change_end(struct limefs_job *, struct limefs_snapshot *,
                           struct limefs_change *);

/* limefs_late_add() notes that ranks of a lost job may write to a range until the time `until`.
 * Before a thread changes these bytes, it calls limefs_late_wait(), which waits for that time.
 * If it waits for anything else after this, it must check again: a job may have been lost. */
void limefs_late_add(struct limefs_job *, uint64_t snap_id, uint64_t from, uint64_t to,
                     double until);
bool limefs_late_possible(struct limefs_job *, uint64_t snap_id, uint64_t from, uint64_t to);
void limefs_late_wait(struct limefs_job *, uint64_t snap_id, uint64_t from, uint64_t to);

/* ---- write_buffers.c: call with the lock held ---- */

/* Writes to the containers all gathered bytes that a lost job has not written. Called before
 * the window, which holds the bytes, is released. */
void limefs_write_buffers_write_out(struct limefs_job *);

#endif
