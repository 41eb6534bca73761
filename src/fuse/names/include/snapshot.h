/*
 * snapshot.h - snapshots of a container (struct limefs_snapshot): its index and open file at
 * one time.
 *
 * When the container changes, the next lookup makes a new snapshot with a new slot. So the
 * kernel never uses pages and names of the old snapshot, which it has cached, for the new one.
 * An unused snapshot may be evicted: its file is closed and its index is freed. It is opened
 * again only if the container is still the same.
 *
 * A write through this mount (writer.h) changes the existing snapshot: it gets another index,
 * but its records keep their node ids, because the kernel's cached pages of them stay right.
 */
#ifndef LIMEFS_SNAPSHOT_H
#define LIMEFS_SNAPSHOT_H

#include "inode.h"
#include "limefile.h"

/* An ordinal whose record got a new node id, because the old record was removed, or because the
 * kernel's cached pages of the record are wrong. The old node id with a new generation would
 * not do: a kernel that receives an id with another generation fails all use of its inode with
 * EIO, so a late listing from before the change would break the inode of the new record. */
struct limefs_replaced_record {
    struct limefs_replaced_record *next;
    uint64_t ordinal, generation;
    unsigned count; /* how often it was replaced */
};

/* The mtimes that the kernel has received for records, in a read-write mount. */
struct limefs_reported_mtimes {
    struct timespec *times;
    size_t count; /* of all that were received; `times` has only the latest */
};

/* Whether the times of a snapshot's file show each change after the file was indexed. */
enum limefs_snapshot_state {
    LIMEFS_SNAPSHOT_VALID,   /* any change sets other times */
    LIMEFS_SNAPSHOT_RECENT,  /* a change may keep the old ctime; or this mount made a change */
    LIMEFS_SNAPSHOT_SUSPECT, /* a change may keep both the old ctime and the old mtime */
    LIMEFS_SNAPSHOT_WRITTEN, /* only this mount, which has locked the file, writes to it */
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
    /* A file with this identity certainly has the records of the index; 0: not known yet. */
    struct limefile_identity confirmed;
    enum limefs_snapshot_state state;
    struct limefs_reported_mtimes reported_mtimes;
    uint64_t lookups;      /* by the kernel, of all records together */
    uint64_t name_lookups; /* number of lookups of records by name so far */
    unsigned pins;         /* by open files and operations; a pinned snapshot is not evicted */
    struct limefs_snapshot *newer, *older; /* in the list of open snapshots */
    uint64_t file_seq;   /* rises when checks become invalid; odd: the file is being replaced */
    bool file_replaced;  /* this mount has replaced its file */
    bool has_sync_error; /* ranks on other hosts wrote, and ended before they synced */
    struct limefs_writer *_Atomic writer; /* NULL before a first write; the snapshot owns it */
    struct limefs_written *_Atomic job;   /* part of the writer; set before `writer` is */
    struct limefs_replaced_record *replaced;
    uint64_t change_count;                /* how often changed() of the watches was called */
    struct limefs_checks *_Atomic checks; /* verify.h; NULL if not requested, or not valid */
    struct limefs_fields *fields;         /* exports.h; NULL if not requested, or not valid */

    /* Held by a thread that reads the metadata in the records (verify.h, exports.h). */
    struct limefs_lock metadata_lock;

    /* Set while the snapshot is open. While it is evicted, fd is -1. */
    int fd;
    struct limefile_index *index; /* guarded by fs->lock; limefs_snapshot_index() returns it */
    /* The adapter that presents a configuration in another format as the container of this
     * index (limegauge.h), or NULL. Such a file is never written to. */
    struct limefile_gauge_adapter *adapter;
};

/*
 * Compares a snapshot, whose file had the identity `seen`, with the file that its name leads
 * to, which has the identity `now`. `clock` is the time before the name was resolved.
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
 * Returns 0 or an error, such as -EACCES if the user may not read it. */
int limefs_snapshot_get_current(struct limefs *, struct limefs_node *container,
                                struct limefs_snapshot **);

/* Like limefs_snapshot_get_current(), but also gets the record of that name. Without such a
 * record, returns LIMEFILE_E_NO_RECORD. After any error, nothing is pinned. */
int limefs_snapshot_find_record(struct limefs *, struct limefs_node *container,
                                const char *name, struct limefs_snapshot **,
                                struct limefile_record *);

/* Notes that the name no longer exists, and drops the snapshot of the container that had it. */
void limefs_snapshot_note_removal(struct limefs *, struct limefs_node *parent,
                                  const char *name);

/* Pins a snapshot that the kernel knows, and opens it if it was evicted. Returns 0, or -ESTALE
 * if it cannot be opened or the container has changed in the meantime. */
int limefs_snapshot_pin(struct limefs *, struct limefs_snapshot *);
void limefs_snapshot_unpin(struct limefs *, struct limefs_snapshot *);
void limefs_snapshot_add_pin(struct limefs *, struct limefs_snapshot *); /* to an earlier pin */

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

/* Like limefs_snapshot_stat(), but with the current owner, mode and times of the file. */
struct stat limefs_snapshot_stat_now(struct limefs *, const struct limefs_snapshot *);

/* Checks that the container of a pinned snapshot still has this record. Returns 0, or -ESTALE
 * if it may have another record at this place. checked: NULL, or the identity of the file at
 * the caller's previous check. If this call changes *checked, the file may have changed since
 * that check (if only in its times, or by an appended record): the caller must discard the
 * bytes that it has read since, and read them again. */
int limefs_snapshot_check_record(struct limefs *, struct limefs_snapshot *,
                                 const struct limefile_record *,
                                 struct limefile_identity *checked);

/* Returns true if a pinned snapshot's file certainly has the records of the index: its identity
 * is the confirmed one, or only this mount writes to it. */
bool limefs_snapshot_is_known(struct limefs *, const struct limefs_snapshot *);

/* Like limefs_snapshot_is_known(), but compares the headers if at most the ctime differs. */
bool limefs_snapshot_revalidate(struct limefs *, struct limefs_snapshot *);

/* Returns the identity with which a pinned snapshot's file certainly has its records, or 0. */
struct limefile_identity limefs_snapshot_confirmed_identity(struct limefs *,
                                                            const struct limefs_snapshot *);

/* Returns true if the file certainly has all attributes that it had when it was indexed. If so,
 * its name still leads to it, because removing a name would have changed the ctime. */
bool limefs_snapshot_is_unchanged(struct limefs *, const struct limefs_snapshot *);

/* ---- callbacks for changes of snapshots ---- */

/* Called with fs->lock held; NULL: not needed. */
struct limefs_snapshot_watch {
    void (*changed)(struct limefs_snapshot *); /* its contents have changed, or soon will */
    void (*evicted)(struct limefs_snapshot *); /* it was evicted: free memory */
    void (*freed)(struct limefs_snapshot *);
};

/* Adds a watch, which must be static, before the first snapshot; at most LIMEFS_WATCHES_MAX. */
void limefs_snapshot_add_watch(struct limefs *, const struct limefs_snapshot_watch *);

/* Reports that bytes of the container, but not its index, have changed or soon will. */
void limefs_snapshot_note_change(struct limefs *, struct limefs_snapshot *);

/* Returns a number that is different after each change of what the snapshot shows. */
uint64_t limefs_snapshot_change_count(struct limefs *, const struct limefs_snapshot *);

/* ---- for the writer, which has it pinned ---- */

/* written: whether, from now on, only this mount changes the container. */
void limefs_snapshot_set_written(struct limefs *, struct limefs_snapshot *, bool written);

/* Replaces the index. The snapshot owns the new one. */
void limefs_snapshot_replace_index(struct limefs *, struct limefs_snapshot *,
                                   struct limefile_index *);

/* limefs_snapshot_record_sync_error() notes that data of ranks on other hosts may be lost. The
 * other function returns whether this was noted since its own latest call. */
void limefs_snapshot_record_sync_error(struct limefs *, uint64_t id);
bool limefs_snapshot_consume_sync_error(struct limefs *, struct limefs_snapshot *);

/* Marks the snapshot as out of date: the next lookup makes a new one. */
void limefs_snapshot_invalidate(struct limefs *, struct limefs_snapshot *);

/* limefs_snapshot_note_mtime() notes that the kernel receives this mtime for a record. The
 * other function returns whether the kernel has received this mtime before. */
void limefs_snapshot_note_mtime(struct limefs *, struct limefs_snapshot *,
                                const struct timespec *);
bool limefs_snapshot_has_reported_mtime(struct limefs *, const struct limefs_snapshot *,
                                        const struct timespec *);

/* Stores the file's current attributes, after its times were set. The snapshot is pinned. */
void limefs_snapshot_refresh_stat(struct limefs *, struct limefs_snapshot *);

/* Called before (true) and after (false) this mount replaces the file: in between, the snapshot
 * counts as current, whether its name leads to the old file or to the new one. */
void limefs_snapshot_set_replacing(struct limefs *, struct limefs_snapshot *, bool replacing);

/* Switches the snapshot to the file that has replaced the container. The file is open as fd,
 * which the caller still owns. Returns 0 or -errno. */
int limefs_snapshot_replace_file(struct limefs *, struct limefs_snapshot *, int fd);

/* Gives a record a new node id, because the kernel's cache of it is wrong. 0 or -ENOMEM. */
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

/* Returns true if the functions above log this error when they open a container. They log what
 * is due to its contents, and failures to read it. */
bool limefs_snapshot_error_is_logged(int err);

/* Returns the source from which to read a pinned snapshot's container. *fd: memory for it. */
struct limefile_source *limefs_snapshot_source(const struct limefs_snapshot *,
                                               struct limefile_fd *fd);

/* Returns -errno if the index may lack records because a part could not be read; else 0. */
int limefs_index_read_error(const struct limefile_index *);

#endif
