/* target.h - write a copy into a temporary file next to its target, and rename it at the end
 *
 * The temporary file, .NAME.limefs-stage, is locked while a process works on it, and has mode
 * 0600. Behind the bytes of the copy it has a journal, which states how many of these bytes are
 * synced. If the source is unchanged, the next run keeps the synced bytes. Functions return 0
 * or a negative code unless stated otherwise. */
#ifndef STAGE_TARGET_H
#define STAGE_TARGET_H

#include "limeidentity.h"
#include "sums.h"
#include "copy_ring.h"

#include <sys/stat.h>

/* Returns "a FIFO", "a directory" and the like; NULL for a regular file. */
const char *stage_file_kind(const struct stat *);

/* ---- the file that has the target's name and will be replaced ---- */

struct stage_existing {
    bool exists;
    int fd; /* holds the container lock until stage_existing_release(); -1: a symbolic link */
    dev_t device;
    ino_t inode;
};

/* Locks the file at `path`, for which lstat() has returned `st`. Returns 0, -EBUSY if another
 * process has it open for writing, -ESTALE if it was replaced after lstat(), or another -errno.
 * Call stage_existing_release() also after an error. */
int stage_existing_lock(struct stage_existing *, const char *path, const struct stat *st);

void stage_existing_release(struct stage_existing *);

/* ---- the temporary file ---- */

struct stage_target {
    const char *path;
    const char *name; /* the last component of path */
    int dirfd;
    char *temp;                      /* name of the temporary file in the directory `dirfd` */
    struct stage_port port;          /* the temporary file */
    struct limefile_identity source; /* the source when the copy began */
    bool has_metadata;               /* the temporary file has the source's mode and owner */
    bool has_journal;                /* the temporary file has a journal */
    uint64_t kept;                   /* bytes kept from an earlier run */
    uint32_t kept_crc;               /* stage_sums.crc of the kept bytes */
};

/* Opens and locks the temporary file, and sets `kept`. `path` must outlive the object. An
 * unrelated file with the temporary name is an error and remains. -EBUSY: another process works
 * on the temporary file. After an error, `why` has a message, and nothing is open. */
int stage_target_open(struct stage_target *, const char *path,
                      const struct limefile_identity *source, char *why, size_t cap);

/* Allocates space for all bytes, so that -ENOSPC comes early. */
int stage_target_allocate(struct stage_target *);

/* Replaces the temporary file by a new, empty one. A failed job may still write to the old
 * one. -EBUSY: another process has created a temporary file in the meantime. */
int stage_target_restart(struct stage_target *, const struct limefile_identity *source);

/* Syncs the first `bytes` bytes, whose stage_sums.crc is `crc`, then writes the journal.
 * Returns 0 also if the journal, but nothing else, cannot be written: the next run then keeps
 * fewer bytes. -EAGAIN: the job that wrote some of the bytes has ended; call
 * stage_target_restart(). */
int stage_target_checkpoint(struct stage_target *, uint64_t bytes, uint32_t crc);

/* Cuts off the journal and syncs all bytes. -EAGAIN: as above. */
int stage_target_sync(struct stage_target *);

/* Gives the temporary file the source's mode and times, its owner as far as allowed, and the
 * stored sums (below), and syncs it. Call it just before the rename, because it may give the
 * file to another user. */
int stage_target_set_metadata(struct stage_target *, const struct stat *source,
                              const struct stage_digest *);

enum {
    STAGE_TEMP_LOST = 1,      /* another process has removed or replaced the temporary file */
    STAGE_TEMP_EXCHANGED = 2, /* after the rename, the target is another process's file */
};

/* Renames the temporary file to the target. Replaces a target only if it is the file in
 * `existing`; returns -EEXIST for any other file. Returns 0, an enum value above, or -errno. */
int stage_target_rename(struct stage_target *, const struct stage_existing *existing);

/* Closes the target. Removes a temporary file that was not renamed, unless `keep` is true. */
void stage_target_close(struct stage_target *, bool keep);

/* Removes the temporary name if it and `path` are names of the same file: a run that is killed
 * in stage_target_rename() can leave both. */
void stage_target_remove_stale(const char *path);

/* Returns the disk space in bytes of an earlier run's temporary file for this target, or 0. */
uint64_t stage_target_disk_bytes(const char *path);

/* ---- the stored sums of a staged file (stored_sums.c), an extended attribute ---- */

/* Stores the sums, and the source's size and mtime, in the copy `fd`. Returns 0 or -errno. */
int stage_stored_sums_save(int fd, const struct stat *source, const struct stage_digest *);

/* Returns true if the times are equal, or if `target` is `source` rounded down to 100 ns, 1 us,
 * ... or 1 s, as on a file system that does not store nanoseconds. */
bool stage_mtime_matches(const struct timespec *source, const struct timespec *target);

/* Returns false if the file has no stored sums, or its size or mtime has changed since they
 * were stored. now: the file's attributes. */
bool stage_stored_sums_load(int fd, const struct stat *now, struct stage_digest *out);

#endif
