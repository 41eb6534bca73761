/*
 * writing.h - the inside of a writer, between its parts: the container (writer.c), records that
 * come, go and change (record.c), and records that somebody has open (target.c). Each uses only
 * those before it.
 */
#ifndef LIMEFS_WRITING_H
#define LIMEFS_WRITING_H

#include "limeedit.h"
#include "state.h"
#include "store.h"
#include "writer.h"

#include <stdatomic.h>

/* A record that somebody has open for writing. */
struct limefs_target {
    struct limefs_target *next;
    struct limefs_writer *writer;
    uint64_t ordinal;
    unsigned users;
    atomic_int error;      /* that a write has met, for the next sync or close */
    struct limefs_run run; /* of sequential writes; under the job's lock */
    struct limefs_collected
        collected;               /* whether and how it is collected beside the container */
    int fd;                      /* the file without a name, then; else -1 */
    _Atomic uint64_t bytes;      /* the record's length, then */
    struct timespec times[2];    /* for the container, once it is in its place */
    _Atomic int64_t noted_mtime; /* ns, for the container; LIMEFS_NO_MTIME: it has it */
};

#define LIMEFS_NO_MTIME INT64_MIN

struct limefs_writer {
    struct limefs *fs;
    struct limefs_view *view;
    struct limefs_lock life; /* of who is the first or the last user; taken before lock */
    atomic_uint users;       /* targets, operations, the mount */
    struct limefs_rwlock lock;
    struct limefs_lock parting;    /* taken after lock */
    pthread_cond_t parted;         /* a target was closed */
    struct limefs_job_view shared; /* with the job; its fd is the container, locked; -1: nobody
                                    * uses it */
    struct limefile_fd file;
    struct limefile_source_ops ops; /* of `file`, but for its sync */
    struct limefile_editor *editor;
    struct limefs_target *targets; /* changed under the lock alone */

    struct limefs_container state;
    struct limefs_last last; /* its last record */
    _Atomic uint64_t length; /* of the data of that, whether or not it is committed */
};

/* ---- writer.c; with the lock held, shared or alone ---- */

/* The folder that holds the container: a descriptor to be closed, and its name there. */
int limefs_writer_folder(const struct limefs_writer *, const char **name);

/* The container in messages. */
const char *limefs_writer_label(const struct limefs_writer *, char *buf, size_t cap);

/* An error that the store has met is told to all targets, and stays with the last record;
 * returned. */
int limefs_writer_tell(struct limefs_writer *, int err);

/* What is gathered for the job is in the container; then, on the ranks' disks, too; and the
 * container itself. Errors are told. The kernel tells each failure of the last once, and may
 * have dropped what it could not write: so nothing else syncs it, the editor neither. */
int limefs_writer_flush_store(struct limefs_writer *);
int limefs_writer_sync_store(struct limefs_writer *);
int limefs_writer_fsync(struct limefs_writer *);

struct limefs_target *limefs_writer_target(const struct limefs_writer *, uint64_t ordinal);
bool limefs_writer_is_last(const struct limefs_writer *, uint64_t ordinal,
                           struct limefile_last *last);
int limefs_writer_record(struct limefs_writer *, uint64_t ordinal, struct limefile_record *,
                         struct limefile_index **index); /* which the caller gives back */

/* -ESTALE if the container is no longer what it was, by somebody else's doing; -EIO while the
 * writer is behind. */
int limefs_writer_check(struct limefs_writer *);

/* The lock, shared, for who is about to write; also on error, when the container cannot be
 * written to. */
int limefs_writer_share(struct limefs_writer *);

/* The same, once it was had alone to catch up. */
void limefs_writer_share_anew(struct limefs_writer *);

/* A user more, without the lock: the first one locks and opens the container. -EACCES: the
 * caller may not write to it. And one less. */
int limefs_writer_use(struct limefs *, struct limefs_view *, struct limefs_writer **);
void limefs_writer_give_up(struct limefs_writer *);

/* In, with the lock alone, and out. */
int limefs_writer_enter(struct limefs *, struct limefs_view *, struct limefs_writer **);
void limefs_writer_leave(struct limefs_writer *);

/* ---- writer.c and record.c; with the lock held alone ---- */

/* The last record is the editor's, as committed; the view shows it as the editor has it. */
void limefs_writer_take_last(struct limefs_writer *);
int limefs_writer_show_last(struct limefs_writer *);

int limefs_writer_reindex(struct limefs_writer *); /* the view shows what the file holds */

/* So does the editor, if the writer is behind, or somebody else has appended. */
int limefs_writer_catch_up(struct limefs_writer *);

/* The container's times. */
int limefs_times_set(struct limefs *, struct limefs_view *, const struct timespec times[2]);

int limefs_writer_commit(struct limefs_writer *); /* the last record */
int limefs_writer_resize(struct limefs_writer *, uint64_t ordinal, uint64_t bytes,
                         bool emptied);

/* The last record's writer has gone: what it has not committed goes, too. After an error it is
 * tried again when the next one wants to write. `forced`: as for limefs_target_close(). */
int limefs_writer_give_up_last(struct limefs_writer *, const struct limefile_last *,
                               bool forced);

/* For who is about to write the container anew: the last record is finished, soon, and
 * committed if it only grows; else -EBUSY, or why it can be neither finished nor taken away,
 * and a line in the log. The lock is let go meanwhile. */
int limefs_writer_make_ready(struct limefs_writer *);

/* A user more of the record's target, which is made if there is none. */
int limefs_target_attach(struct limefs_writer *, uint64_t ordinal, struct limefs_target **);

/* What is written to the record is collected from now on; it is `bytes` long and begins like
 * the old one. `emptied`, by O_TRUNC: somebody is about to write. And the end: it takes the
 * record's place; 0 if it was put there already. */
int limefs_aside_begin(struct limefs_target *, const struct limefile_record *, uint64_t bytes,
                       bool emptied);
int limefs_aside_finish(struct limefs_target *);

/* ---- holders.c ---- */

/* True if a process has a descriptor of the record to write to it, as far as /proc shows.
 * Without the writer's lock; asks nothing of the mount. */
bool limefs_record_is_held(struct limefs *, struct limefs_view *, uint64_t ordinal);

#endif
