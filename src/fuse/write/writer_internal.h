/*
 * writer_internal.h - the internals of a writer, shared by its parts: the container (writer.c),
 * records that are appended, removed and changed (record.c), and open records (target.c). Each
 * part uses only parts named before it.
 */
#ifndef LIMEFS_WRITER_INTERNAL_H
#define LIMEFS_WRITER_INTERNAL_H

#include "limeedit.h"
#include "write_state.h"
#include "write_buffers.h"
#include "writer.h"

#include <stdatomic.h>

/* A record that is open for writing. */
struct limefs_target {
    struct limefs_target *next;
    struct limefs_writer *writer;
    uint64_t ordinal;
    unsigned users;
    atomic_int error;  /* of a failed write; the next sync returns it */
    bool needs_new_id; /* at the close: the kernel shows more data than could be stored */
    struct limefs_write_stream stream; /* sequential writes; under the job's lock */
    struct limefs_staging staging;     /* whether and how its data are staged */
    int fd;                            /* the shadow file; -1: not staged */
    _Atomic uint64_t bytes;            /* length of the staged data */
    struct timespec times[2];          /* to be set when the container gets the staged data */
    _Atomic int64_t deferred_mtime;    /* ns, to be set on the container; or LIMEFS_NO_MTIME */
};

#define LIMEFS_NO_MTIME INT64_MIN

struct limefs_writer {
    struct limefs *fs;
    struct limefs_snapshot *snap;
    struct limefs_lock open_lock; /* guards opening and closing; acquired before `lock` */
    atomic_uint users;            /* targets, operations, the mount */
    struct limefs_rwlock lock;
    struct limefs_lock close_lock; /* for target_closed; acquired after `lock` */
    pthread_cond_t target_closed;  /* a target was closed */
    struct limefs_written written; /* what the job uses; fd: the locked container, or -1 */
    struct limefile_fd file;
    struct limefile_source_ops ops; /* those of `file`, but with sync_source() */
    struct limefile_editor *editor;
    struct limefs_target *targets; /* changed with the lock held exclusively */

    struct limefs_container state;
    struct limefs_last last;     /* state of the last record */
    _Atomic uint64_t last_bytes; /* of the last record's data, committed or not */
};

/* ---- writer.c; call with the lock held, shared or exclusively ---- */

/* Opens the container's directory; the caller closes it. *name: the container's name in it. */
int limefs_writer_directory(const struct limefs_writer *, const char **name);

/* Returns the container's path for messages. */
const char *limefs_writer_label(const struct limefs_writer *, char *buf, size_t cap);

/* Reports err, unless 0, to all targets and a growing last record. Returns err. */
int limefs_writer_report_error(struct limefs_writer *, int err);

/* Flush gathered writes to the container; flush and make the ranks sync; fsync() the container.
 * All three report errors to all targets. No other code, not even the editor, may fsync() the
 * container, because the kernel reports a failure only once, and may then drop the data. */
int limefs_writer_flush_buffers(struct limefs_writer *);
int limefs_writer_sync_ranks(struct limefs_writer *);
int limefs_writer_fsync(struct limefs_writer *);

struct limefs_target *limefs_writer_find_target(const struct limefs_writer *, uint64_t ordinal);
bool limefs_writer_is_last(const struct limefs_writer *, uint64_t ordinal,
                           struct limefile_last_record *last);
int limefs_writer_get_record(struct limefs_writer *, uint64_t ordinal, struct limefile_record *,
                             struct limefile_index **index); /* the caller frees it */

/* -ESTALE: another program has changed or replaced the container; -EIO: it is UNINDEXED. */
int limefs_writer_check(struct limefs_writer *);

/* Acquires the lock shared, even if it returns an error. Returns 0, or an error that forbids
 * the write. */
int limefs_writer_lock_shared(struct limefs_writer *);

/* Calls limefs_writer_refresh(), which needs the lock exclusively; then shares it again. */
void limefs_writer_relock_shared(struct limefs_writer *);

/* Add and remove a user. The caller does not hold the lock. The first user locks and opens the
 * container. Returns -EACCES if the requesting user has no write permission. */
int limefs_writer_get(struct limefs *, struct limefs_snapshot *, struct limefs_writer **);
void limefs_writer_put(struct limefs_writer *);

/* Add a user and acquire the lock exclusively; release the lock and remove the user. */
int limefs_writer_lock(struct limefs *, struct limefs_snapshot *, struct limefs_writer **);
void limefs_writer_unlock(struct limefs_writer *);

/* ---- writer.c and record.c; call with the lock held exclusively ---- */

/* Reset the last record to its committed state; update the record in the snapshot's index. */
void limefs_writer_reset_last(struct limefs_writer *);
int limefs_writer_publish_last(struct limefs_writer *);

int limefs_writer_reindex(struct limefs_writer *); /* index the file again */

/* Updates the index and the editor in UNINDEXED, or if another program has appended. */
int limefs_writer_refresh(struct limefs_writer *);

int limefs_set_times(struct limefs *, struct limefs_snapshot *, const struct timespec times[2]);

int limefs_writer_commit(struct limefs_writer *); /* commits the last record */
int limefs_writer_resize(struct limefs_writer *, uint64_t ordinal, uint64_t bytes,
                         bool emptied);

/* Commits or discards the last record of the container when all its users have closed it. After
 * an error, the next use for writing tries again. `forced`: as for limefs_target_close(). */
int limefs_writer_finish_last(struct limefs_writer *, const struct limefile_last_record *,
                              bool forced);

/* Prepares to rewrite the container. The last record must be committed for this: commits it if
 * it has grown; if it is new, waits a short time, with the lock released, for its close. On
 * failure logs and returns the error: -EBUSY if the record is still open, or that of its commit
 * or removal. */
int limefs_writer_prepare_rewrite(struct limefs_writer *);

/* Adds a user to the record's target, which is created if necessary. */
int limefs_target_acquire(struct limefs_writer *, uint64_t ordinal, struct limefs_target **);

/* Stages the record's data from now on, in a shadow file that begins with the old data, cut or
 * extended to `bytes`. `emptied`: by O_TRUNC, so a write will follow. limefs_shadow_commit()
 * puts the staged data into the container, unless the container already has them. */
int limefs_shadow_create(struct limefs_target *, const struct limefile_record *, uint64_t bytes,
                         bool emptied);
int limefs_shadow_commit(struct limefs_target *);

/* ---- open_writers.c ---- */

/* Returns true if /proc shows a process that has the record open for writing. Sends no request
 * to the mount. Call it without the writer's lock. */
bool limefs_record_has_writer(struct limefs *, struct limefs_snapshot *, uint64_t ordinal);

#endif
