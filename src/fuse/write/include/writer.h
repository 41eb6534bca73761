/*
 * writer.h - writes to a container: locks it, appends, replaces and changes records.
 *
 * Each snapshot that was ever written to has one writer. While it has users, the container is
 * locked against other writers and open for writing. The snapshot shows each change at once.
 *
 * A thread that moves bytes shares the writer's lock with others, so that many requests run at
 * the same time; a thread that changes where bytes belong holds the lock exclusively.
 *
 * Three kinds of records can be written to:
 *   last      any length, in place; limefile_commit() writes the length into its header
 *   inner     in place, within its length
 *   replaced  an inner record after O_TRUNC or a change of its length: new data are staged in
 *             a file without a name (shadow file), and put in place when they are synced
 */
#ifndef LIMEFS_WRITER_H
#define LIMEFS_WRITER_H

#include "write_buffers.h"
#include "snapshot.h"

struct limefs_writer;
struct limefs_target; /* a record that is open for writing */

/* Ensures that writers are freed with their snapshots. Call it before the mount. */
void limefs_writers_init(struct limefs *);

/* Opens a record of a pinned snapshot for writing. First locks the container, and repairs it
 * after a crash. `appends`: only to append; -EPERM for an inner record. Returns -EBUSY if
 * another program writes to it, -EROFS, -EACCES ...; the log says what to do. */
int limefs_target_open(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                       bool appends, struct limefs_target **);
uint64_t limefs_target_ordinal(const struct limefs_target *);

/* Closes it. The last close of a record commits its data, or discards them after a failed write
 * and if `forced`: the mount ends, and a record that was not closed is not complete. */
void limefs_target_close(struct limefs *, struct limefs_target *, bool forced);

/* Writes all n bytes and returns n, or -errno. The record grows if necessary. */
ssize_t limefs_target_write(struct limefs *, struct limefs_target *, const char *buf, size_t n,
                            uint64_t offset);

/* Syncs all data of the record and commits its length. `closing`: called when a descriptor is
 * closed. If a process has a copy of it and nothing was written, a later call commits. */
int limefs_target_sync(struct limefs *, struct limefs_target *, bool closing);

/* Like fallocate(2) with `mode`, but returns 0 or -errno. */
int limefs_target_allocate(struct limefs *, struct limefs_target *, int mode, uint64_t offset,
                           uint64_t bytes);

/* ---- by ordinal, of a pinned snapshot; the container is locked during the call ---- */

/* Changes the length. `emptied`: by O_TRUNC. */
int limefs_record_resize(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                         uint64_t bytes, bool emptied);

/* Appends a record, whose type follows from the file name, and opens it as *target. */
int limefs_record_append(struct limefs *, struct limefs_snapshot *, const char *name,
                         struct limefs_target **target);

/* Returns true if the record was appended and is not committed yet. */
bool limefs_record_is_new(struct limefs_snapshot *, uint64_t ordinal);

/* Removes the record with that file name. -EPERM: it is not the last one; -EBUSY: it is open
 * for writing; -ENOENT also if another record gets its number while the call waits. */
int limefs_record_remove(struct limefs *, struct limefs_snapshot *, const char *name);

/* Sets a field of the header, `key`: "type", "mb" or "me" (begin or end of a message). */
int limefs_record_set_header(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                             const char *key, const char *value, size_t len);

/* Sets the times of access and change, as utimensat() does. For a record with staged data, sets
 * them when these data are put into the container. */
int limefs_record_set_times(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                            const struct timespec times[2]);

/* Notes the mtime that a kernel with a writeback cache sends between writes: the next sync or
 * close of the record sets it. Setting it at once would wait until no thread writes to the
 * container, and the kernel sends no writes until the call returns. False: not possible. */
bool limefs_target_defer_mtime(struct limefs_target *, const struct timespec *);

/* ---- for readers ---- */

/* The record's data now: in `fd` from offset `at`. */
struct limefs_location {
    int fd;
    uint64_t at, bytes;
    uint64_t layout; /* number of the writer's layout: while it is the same, no record moves */
};

/* Locates a record of a snapshot with a writer; it does not move before the unlock. */
int limefs_location_lock(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                         struct limefs_location *);
void limefs_location_unlock(struct limefs_snapshot *);

/* Between lock and unlock: flushes gathered writes to these n bytes of the container. */
void limefs_location_flush(struct limefs *, struct limefs_snapshot *, uint64_t at, size_t n);

/* Returns the record's current length, which may be newer than the index. */
uint64_t limefs_record_bytes(struct limefs *, struct limefs_snapshot *,
                             const struct limefile_record *);

/* ---- the mount ---- */

/* Lock the mounted container, and unlock it at the unmount. If another container replaces it,
 * the mount locks the new one at its first use for writing. */
int limefs_writer_hold_for_mount(struct limefs *, struct limefs_snapshot *);
void limefs_writer_release_for_mount(struct limefs *);

#endif
