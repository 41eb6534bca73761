/*
 * snapshot.h - snapshots of a container (struct limefs_snapshot): its index and open file at
 * one time.
 *
 * When the container changes, the next lookup makes a new snapshot with a new slot, so the
 * kernel never takes pages and names that it has cached of the old one for the new one. An
 * unused snapshot may be evicted: its file is closed and its index freed. It is opened again
 * only if the container is still the same.
 *
 * Only writes through this mount (writer.h) change a snapshot: it gets another index, but its
 * records keep their node ids, because the kernel's cached pages of them are right.
 */
#ifndef LIMEFS_SNAPSHOT_H
#define LIMEFS_SNAPSHOT_H

#include "inode.h"
#include "limefile.h"

/* An ordinal whose record got a new node id, because the old record was removed, or the
 * kernel's pages of the record are wrong. A new generation of the old id would not do: a kernel
 * that receives another generation of an id fails all use of its inode with EIO. If a listing
 * from before the change arrived late, it would do so to the inode of the new record. */
struct limefs_replaced_record {
    struct limefs_replaced_record *next;
    uint64_t ordinal, generation;
    unsigned count; /* how often it was replaced */
};

/* The mtimes of records that the kernel has received, in a mount that is written to. */
struct limefs_reported_mtimes {
    struct timespec *times;
    size_t count; /* of all that it has received; `times` has only the last ones */
};

/* Whether the times of a snapshot's file prove that it is still what was indexed. */
enum limefs_snapshot_state {
    LIMEFS_SNAPSHOT_VALID,   /* any change sets other times */
    LIMEFS_SNAPSHOT_RECENT,  /* a change may leave the same ctime, or this mount made one */
    LIMEFS_SNAPSHOT_SUSPECT, /* a change may leave the same ctime and mtime */
    LIMEFS_SNAPSHOT_WRITTEN, /* locked and written to by this mount alone */
};

enum limefs_snapshot_validity {
    LIMEFS_SNAPSHOT_CURRENT,
    LIMEFS_SNAPSHOT_UNCERTAIN, /* valid from now on if its headers still match the index */
    LIMEFS_SNAPSHOT_OUTDATED,  /* a new snapshot is needed */
};

struct limefs_snapshot {
    uint32_t slot;
    uint64_t id;              /* never used again */
    struct limefs_node *node; /* a reference to the container */

    /* Guarded by fs->lock. */
    struct stat st; /* of the container when indexed, or after this mount changed it */
    struct limefile_identity stamp; /* the identity in st; 0: out of date */
    /* A file with this identity certainly has the records of the index; 0: no identity does
     * yet, because the file's ctime was too recent. */
    struct limefile_identity confirmed;
    enum limefs_snapshot_state state;
    struct limefs_reported_mtimes reported_mtimes;
    uint64_t lookups;      /* by the kernel, of all records together */
    uint64_t name_lookups; /* lookups of records by name so far */
    unsigned pins;         /* open files and operations; they keep it from being evicted */
    struct limefs_snapshot *newer, *older; /* in the list of open snapshots */
    uint64_t file_seq;   /* rises when checks become invalid; odd: the file is being replaced */
    bool file_replaced;  /* this mount has replaced its file */
    bool has_sync_error; /* ranks on other hosts wrote, and ended before they synced */
    struct limefs_writer *_Atomic writer; /* NULL before a first write; the snapshot owns it */
    struct limefs_written *_Atomic job;   /* the job's part of the writer; set before it */
    struct limefs_replaced_record *replaced;
    uint64_t change_count;                /* how often changed() of the watches was called */
    struct limefs_checks *_Atomic proofs; /* verify.h; NULL if not requested, or not valid */
    struct limefs_fields *fields;         /* exports.h; NULL if not requested, or not valid */

    /* Held by a thread that reads the metadata in its records (verify.h, exports.h). */
    struct limefs_lock metadata_lock;

    /* Set while it is open; otherwise fd is -1. */
    int fd;
    struct limefile_index *index; /* under fs->lock, too: see limefs_snapshot_index() */
    /* The adapter that presents a configuration in another format as the container of this
     * index (limegauge.h), or NULL. Such a file is never written to. */
    struct limefile_gauge_adapter *adapter;
};

/*
 * Compares a snapshot with identity `seen` and the file `now` that its name leads to:
 *   state            file                           clock                          result
 *   WRITTEN          the same                       -                              CURRENT
 *   VALID            unchanged                      -                              CURRENT
 *   RECENT, SUSPECT  unchanged (limefile_validity)  within a tick of its ctime,    CURRENT
 *                                                   or being_written
 *   RECENT           unchanged                      later                          UNCERTAIN
 *   SUSPECT          unchanged                      later                          OUTDATED
 *   any              otherwise                      -                              OUTDATED
 */
enum limefs_snapshot_validity limefs_snapshot_validity(enum limefs_snapshot_state,
                                                       const struct limefile_identity *seen,
                                                       const struct limefile_identity *now,
                                                       const struct timespec *clock,
                                                       bool being_written);

/* Gets the current snapshot of a container, pinned: limefs_snapshot_unpin() releases it.
 * Returns 0, or an error: -EACCES if the caller may not read it, -ESTALE if it is now a plain
 * file ... */
int limefs_snapshot_get_current(struct limefs *, struct limefs_node *container,
                                struct limefs_snapshot **);

/* The same, and gets the record of that name. LIMEFILE_E_NO_RECORD: it has none; not pinned. */
int limefs_snapshot_find_record(struct limefs *, struct limefs_node *container,
                                const char *name, struct limefs_snapshot **,
                                struct limefile_record *);

/* Notes that the name no longer exists, and drops the snapshot of the container that had it. */
void limefs_snapshot_note_removal(struct limefs *, struct limefs_node *parent,
                                  const char *name);

/* Pins a snapshot that the kernel knows, and opens it if it was evicted. Returns 0, or -ESTALE
 * if it cannot be opened or the container has changed since. */
int limefs_snapshot_pin(struct limefs *, struct limefs_snapshot *);
void limefs_snapshot_unpin(struct limefs *, struct limefs_snapshot *);
void limefs_snapshot_add_pin(struct limefs *, struct limefs_snapshot *); /* if it is pinned */

/* Add n lookups of records by the kernel, or drop n, which may free the snapshot. */
void limefs_snapshot_add_lookups(struct limefs *, struct limefs_snapshot *, uint64_t n);
void limefs_snapshot_forget(struct limefs *, struct limefs_snapshot *, uint64_t n);

/* Adds n to the number of lookups of records by name so far, and returns it. */
uint64_t limefs_snapshot_count_name_lookups(struct limefs *, struct limefs_snapshot *,
                                            uint64_t n);

/* Returns the index of a pinned snapshot; the caller releases it by limefile_index_free(). */
struct limefile_index *limefs_snapshot_index(struct limefs *, struct limefs_snapshot *);

/* Returns the attributes of the container at the time of the snapshot. */
struct stat limefs_snapshot_stat(struct limefs *, const struct limefs_snapshot *);

/* The same of a pinned snapshot, but with the current owner, mode and times. */
struct stat limefs_snapshot_stat_now(struct limefs *, const struct limefs_snapshot *);

/* Checks that the container of a pinned snapshot still has this record. -ESTALE: the container
 * was changed in place, so that it may have another one there. `checked`, unless NULL, is the
 * identity of the file at the caller's last check. If this call changes *checked, the file has
 * changed since, if only in its times or by an appended record: the caller must read again what
 * it read before this call. */
int limefs_snapshot_check_record(struct limefs *, struct limefs_snapshot *,
                                 const struct limefile_record *,
                                 struct limefile_identity *checked);

/* Returns true if a pinned snapshot's file certainly has the records of the index: its identity
 * is the confirmed one, or only this mount writes to it. */
bool limefs_snapshot_is_known(struct limefs *, const struct limefs_snapshot *);

/* The same, but if the identity does not decide, compares all headers with the index. */
bool limefs_snapshot_revalidate(struct limefs *, struct limefs_snapshot *);

/* Returns the identity with which a pinned snapshot's file certainly has its records, or 0. */
struct limefile_identity limefs_snapshot_confirmed_identity(struct limefs *,
                                                            const struct limefs_snapshot *);

/* Returns true if the file has all attributes that it had when it was indexed. Its name then
 * still leads to it, as removing a name changes the ctime. False if that is not certain. */
bool limefs_snapshot_is_unchanged(struct limefs *, const struct limefs_snapshot *);

/* ---- callbacks for changes of snapshots ---- */

/* Called with fs->lock held; NULL: not needed. */
struct limefs_snapshot_watch {
    void (*changed)(struct limefs_snapshot *); /* its contents have changed, or are about to */
    void (*evicted)(struct limefs_snapshot *); /* it was evicted: free what takes memory */
    void (*freed)(struct limefs_snapshot *);
};

/* Adds a watch, which must be static, before the first snapshot; at most LIMEFS_WATCHES_MAX. */
void limefs_snapshot_add_watch(struct limefs *, const struct limefs_snapshot_watch *);

/* Reports that the bytes of the container have changed, or are about to, but not its index. */
void limefs_snapshot_note_change(struct limefs *, struct limefs_snapshot *);

/* Returns a number that is different after each change of what the snapshot shows. */
uint64_t limefs_snapshot_change_count(struct limefs *, const struct limefs_snapshot *);

/* ---- for the writer, which has it pinned ---- */

/* Notes that from now on, or no longer, only this mount changes the container. */
void limefs_snapshot_set_written(struct limefs *, struct limefs_snapshot *, bool written);

/* Replaces the index. The snapshot owns the new one. */
void limefs_snapshot_replace_index(struct limefs *, struct limefs_snapshot *,
                                   struct limefile_index *);

/* Note that data which ranks on other hosts wrote to the snapshot of that id may be lost; and
 * return true once after that. */
void limefs_snapshot_record_sync_error(struct limefs *, uint64_t id);
bool limefs_snapshot_consume_sync_error(struct limefs *, struct limefs_snapshot *);

/* Marks the snapshot as out of date: the next lookup makes a new one. */
void limefs_snapshot_invalidate(struct limefs *, struct limefs_snapshot *);

/* Note that the kernel receives this mtime for records; and return whether it ever did. */
void limefs_snapshot_note_mtime(struct limefs *, struct limefs_snapshot *,
                                const struct timespec *);
bool limefs_snapshot_has_reported_mtime(struct limefs *, const struct limefs_snapshot *,
                                        const struct timespec *);

/* Stores the file's current attributes, after its times were set. The snapshot is pinned. */
void limefs_snapshot_refresh_stat(struct limefs *, struct limefs_snapshot *);

/* Called before (true) and after (false) this mount replaces the file: in between, the snapshot
 * counts as current, whether its name leads to the old file or to the new one. */
void limefs_snapshot_set_replacing(struct limefs *, struct limefs_snapshot *, bool replacing);

/* Switches to the file that has replaced the container and is open as fd, which stays the
 * caller's. Returns 0 or -errno. */
int limefs_snapshot_replace_file(struct limefs *, struct limefs_snapshot *, int fd);

/* Gives a record a new node id, as what the kernel knows of it is wrong. 0 or -ENOMEM. */
int limefs_snapshot_renew_record(struct limefs *, struct limefs_snapshot *, uint64_t ordinal);

/* Returns the current node id of the ordinal's record. */
uint64_t limefs_snapshot_record_id(struct limefs *, const struct limefs_snapshot *,
                                   uint64_t ordinal);

/* Like limefs_inode_find(), but sets is_stale and no pointer if the record was replaced. */
struct limefs_inode limefs_inode_find_current(struct limefs *, uint64_t id);

/* Returns a number that distinguishes records of the same ordinal. */
uint64_t limefs_snapshot_generation(struct limefs *, const struct limefs_snapshot *,
                                    uint64_t ordinal);

/* Closes and frees all snapshots. */
void limefs_snapshots_release(struct limefs *);

/* Returns whether the functions above log this error of opening a container: one that is due to
 * its contents, or that prevents reading it. */
bool limefs_snapshot_error_is_logged(int err);

/* Returns the source from which to read a pinned snapshot's container. *fd: memory for it. */
struct limefile_source *limefs_snapshot_source(const struct limefs_snapshot *,
                                               struct limefile_fd *fd);

/* Returns 0, or -errno if a part could not be read: there may be more records than indexed. */
int limefs_index_read_error(const struct limefile_index *);

#endif
