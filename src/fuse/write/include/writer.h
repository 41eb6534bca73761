/*
 * writer.h - writes to a container: locks it, appends, replaces and changes records.
 *
 * Each snapshot that was ever written to has one writer. While the writer has users, the
 * container is open for writing and locked. The snapshot shows each change at once.
 *
 * A thread that reads or writes data holds the writer's lock shared, so that many requests run
 * at the same time; a thread that moves or resizes records holds the lock exclusively.
 *
 * Three kinds of records can be written to:
 *   last      any length, in place; limefile_commit() writes the length into its header
 *   inner     in place, within its length
 *   replaced  an inner record after O_TRUNC or a change of its length: new data are staged in
 *             a nameless file (shadow file), and put into the container at a sync or close
 */
#ifndef LIMEFS_WRITER_H
#define LIMEFS_WRITER_H

#include "write_buffers.h"
#include "snapshot.h"

struct limefs_writer;
struct limefs_target; /* a record that is open for writing */

/* Ensures that writers are freed with their snapshots. Call it before the mount. */
void limefs_writers_init(struct limefs *);

/* Opens a record of a pinned snapshot for writing. The writer's first user locks the container,
 * and repairs it after a crash. `appends`: opens only to append; -EPERM for an inner record.
 * -EBUSY: another program has the lock; -EROFS, -EACCES ...: the log says what to do. */
int limefs_target_open(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                       bool appends, struct limefs_target **);
uint64_t limefs_target_ordinal(const struct limefs_target *);

/* Closes the target. The last close commits the record's data, or discards them after a failed
 * write. `forced`: no program closed the record, so its data may be incomplete and are
 * discarded, too. */
void limefs_target_close(struct limefs *, struct limefs_target *, bool forced);

/* Writes all n bytes and returns n, or -errno. The record grows if necessary. */
ssize_t limefs_target_write(struct limefs *, struct limefs_target *, const char *buf, size_t n,
                            uint64_t offset);

/* Syncs all data of the record and commits its length. `closing`: a program closes a
 * descriptor, of which other processes may have copies; then a record without new data is not
 * committed before the last copy is closed. */
int limefs_target_sync(struct limefs *, struct limefs_target *, bool closing);

/* Like fallocate(2) with `mode`, but returns 0 or -errno. */
int limefs_target_allocate(struct limefs *, struct limefs_target *, int mode, uint64_t offset,
                           uint64_t bytes);

/* ---- records of a pinned snapshot; each function locks the container during the call ---- */

/* Changes the record's length. `emptied`: because of O_TRUNC. */
int limefs_record_resize(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                         uint64_t bytes, bool emptied);

/* Appends a record, whose type follows from the file name, and opens it as *target. */
int limefs_record_append(struct limefs *, struct limefs_snapshot *, const char *name,
                         struct limefs_target **target);

/* Returns true if the record has been appended and is not committed yet. */
bool limefs_record_is_new(struct limefs_snapshot *, uint64_t ordinal);

/* Waits a short time until the record with that file name is closed, and removes it. -EPERM: it
 * is not the last one; -EBUSY: it is still open for writing; -ENOENT also if another record has
 * its ordinal after the wait. */
int limefs_record_remove(struct limefs *, struct limefs_snapshot *, const char *name);

/* Sets a field of the header, `key`: "type", "mb" or "me" (begin or end of a message). */
int limefs_record_set_header(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                             const char *key, const char *value, size_t len);

/* Sets the container's times, as futimens(3) does. If the record has staged data, sets them
 * only when these data are put into the container. */
int limefs_record_set_times(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                            const struct timespec times[2]);

/* Notes the mtime that a kernel with a writeback cache sends between writes; the next sync or
 * close of the record sets it. (limefs_record_set_times() waits until no thread writes to the
 * container, and the kernel holds back all writes until then.) False: out of range. */
bool limefs_target_defer_mtime(struct limefs_target *, const struct timespec *);

/* ---- for readers ---- */

/* Where a record's data are now: in `fd` from offset `at`. */
struct limefs_location {
    int fd;
    uint64_t at, bytes;
    uint64_t layout; /* the writer's layout number; changes when a record moves */
};

/* Locates a record of a snapshot with a writer. The record does not move before the unlock. */
int limefs_location_lock(struct limefs *, struct limefs_snapshot *, uint64_t ordinal,
                         struct limefs_location *);
void limefs_location_unlock(struct limefs_snapshot *);

/* Between lock and unlock: flushes gathered writes to these n bytes of the container. */
void limefs_location_flush(struct limefs *, struct limefs_snapshot *, uint64_t at, size_t n);

/* Returns the record's current length, which may be newer than the one in the index. */
uint64_t limefs_record_bytes(struct limefs *, struct limefs_snapshot *,
                             const struct limefile_record *);

/* ---- the mount ---- */

/* Lock the mounted container, and unlock it at the unmount. If another container replaces it,
 * the mount locks that one at its first use for writing. */
int limefs_writer_hold_for_mount(struct limefs *, struct limefs_snapshot *);
void limefs_writer_release_for_mount(struct limefs *);

#endif
