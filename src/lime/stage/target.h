/*
 * target.h - write a copy into a temporary file beside its target, and rename it at the end
 *
 * The temporary file, .NAME.limefs-stage, is locked while a process works on it, and has mode
 * 0600. Behind the bytes of the copy it contains a journal: how far they are synced. The next
 * run keeps them so far if the source is still the same. Results are 0 or a negative code.
 */
#ifndef STAGE_TARGET_H
#define STAGE_TARGET_H

#include "limeidentity.h"
#include "sums.h"
#include "transfer.h"

#include <sys/stat.h>

/* "a FIFO", "a folder" ...; NULL: a regular file. */
const char *stage_kind_of(const struct stat *);

/* ---- the file that has the target's name and will be replaced ---- */

struct stage_existing {
    bool exists;
    int fd; /* holds the container lock until stage_existing_release(); -1: a symbolic link */
    dev_t device;
    ino_t inode;
};

/* Locks the file at `path`, of which lstat() has returned `st`. Returns 0, -EBUSY if another
 * process has it open for writing, -ESTALE if it was replaced since, or another -errno. Release
 * it in any case. */
int stage_existing_lock(struct stage_existing *, const char *path, const struct stat *st);

void stage_existing_release(struct stage_existing *);

/* ---- the temporary ---- */

struct stage_target {
    const char *path;
    const char *name; /* in the folder: the end of path */
    int folder;
    char *temp;             /* name of the temporary in the folder */
    struct stage_port port; /* the temporary */
    struct limefile_identity source;
    bool adopted;      /* it has the source's mode and owner */
    bool has_journal;  /* so the next run can go on */
    uint64_t kept;     /* bytes that an earlier run has left */
    uint32_t kept_crc; /* stage_sums.crc of them */
};

/* -EBUSY: somebody else is at it. Other failures come with a sentence: what is in the way is
 * named, and left alone. */
int stage_target_open(struct stage_target *, const char *path,
                      const struct limefile_identity *source, char *why, size_t cap);

/* Room for all bytes. -ENOSPC early. */
int stage_target_allocate(struct stage_target *);

/* Throws away what there is, and begins with another file: whoever may still write into the old
 * one writes nowhere. */
int stage_target_restart(struct stage_target *, const struct limefile_identity *source);

/* Syncs what stands before `bytes`, and notes it in the journal. A failure to note it is not an
 * error: the next run starts again. -EAGAIN: a job has gone that had written some of it:
 * restart. */
int stage_target_checkpoint(struct stage_target *, uint64_t bytes, uint32_t crc);

/* Cuts the journal off and syncs all bytes. -EAGAIN: as above. */
int stage_target_sync(struct stage_target *);

/* Mode, times, owner (as far as allowed) and the record of what was staged; synced. For what is
 * verified, just before it gets its name: what is interrupted then may not be ours any more. */
int stage_target_adopt(struct stage_target *, const struct stat *source,
                       const struct stage_digest *);

enum {
    STAGE_TEMP_LOST = 1,      /* it was removed or replaced; nothing was done */
    STAGE_TEMP_EXCHANGED = 2, /* it was replaced so late that another file has got the name */
};

/* Gives it its name. Replaces only the file that `existing` has locked, if any: -EEXIST if
 * another one has the name. Returns > 0 for one of the enum above. */
int stage_target_rename(struct stage_target *, const struct stage_existing *existing);

/* keep: it may be resumed; else, unless renamed, nothing of ours is left. */
void stage_target_close(struct stage_target *, bool keep);

/* Removes the second name that a run has left which was killed when its file had got its name.
 */
void stage_target_tidy(const char *path);

/* Bytes that an earlier try at this target takes up. */
uint64_t stage_target_has(const char *path);

/* ---- the record of a staged file (record.c), an extended attribute of it ---- */

int stage_record_store(int fd, const struct stat *source, const struct stage_digest *);

/* The source's time as a copy of it has it: where the file system of the copy keeps less than
 * nanoseconds (100 of them, microseconds, ..., whole seconds), rounded down. */
bool stage_time_agrees(const struct timespec *source, const struct timespec *target);

/* False if there is none, or the file has changed since. */
bool stage_record_load(int fd, const struct stat *now, struct stage_digest *out);

#endif
