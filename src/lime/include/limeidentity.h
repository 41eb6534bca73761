/*
 * limeidentity.h - identify a file and its state at one moment, by the values of fstat(2).
 *
 * The daemon, the job, lime stage and limefs-run use it to detect that a file has changed. All
 * functions are thread-safe; functions without a descriptor are also async-signal-safe.
 */
#ifndef LIMEFILE_IDENTITY_H
#define LIMEFILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct limefile_identity {
    uint64_t dev, ino;
    uint32_t uid, mode; /* mode: with the file type */
    int64_t size;       /* bytes */
    struct timespec mtime, ctime;
};

/* Flags for the members in which two identities differ. */
enum {
    LIMEFILE_DEV = 1, /* for one file, it can differ between hosts and after a reboot */
    LIMEFILE_INO = 2,
    LIMEFILE_UID = 4,
    LIMEFILE_MODE = 8,
    LIMEFILE_SIZE = 16,
    LIMEFILE_MTIME = 32,
    LIMEFILE_CTIME = 64,
    LIMEFILE_FILE = LIMEFILE_DEV | LIMEFILE_INO,
    LIMEFILE_STATE = LIMEFILE_SIZE | LIMEFILE_MTIME | LIMEFILE_CTIME,
};

struct limefile_identity limefile_identify(const struct stat *);

/* Returns the LIMEFILE_... flags of all differences, or 0. */
unsigned limefile_identity_differences(const struct limefile_identity *,
                                       const struct limefile_identity *);

/* Returns true for the same file with unchanged data and attributes. */
bool limefile_identity_equal(const struct limefile_identity *,
                             const struct limefile_identity *);

/* Returns true for the same file, changed or not. */
bool limefile_identity_same_file(const struct limefile_identity *,
                                 const struct limefile_identity *);

/* Returns true for the same file with unchanged data; owner, mode or links can have changed. */
bool limefile_identity_same_data(const struct limefile_identity *,
                                 const struct limefile_identity *);

bool limefile_time_equal(const struct timespec *, const struct timespec *);

/* Returns true if a file with this mtime or ctime, read at `seen`, can have changed since then
 * without a new time: changes within a tick of the file system's clock get the same time. */
bool limefile_time_is_suspect(const struct timespec *time, const struct timespec *seen);

/* Returns true if a write to the file can still be in progress: it has this ctime, less than a
 * minute old, and a process has it open for writing. The kernel sets a file's times when a
 * write(2) begins, or at the first of several stores through a mapping, and not again at the
 * end. Call it after fstat(2) and before reading the bytes. fd must be open for reading only.
 * It tries to get a lease, which root gets on all files and other users on their own. Returns
 * true also where the lease fails with EAGAIN for another reason (NFS without a delegation),
 * and false after other errors, such as EACCES for files of other users. The caller must ignore
 * SIGIO: the kernel sends it if another process opens the file in the meantime. */
bool limefile_is_being_written(int fd, const struct timespec *ctime);

/* Whether data that were read in the past are still those of the file. */
enum limefile_validity {
    LIMEFILE_VALID,
    LIMEFILE_CHANGED,
    LIMEFILE_SUSPECT, /* nothing differs, but the file can have changed within the same times */
};

/*
 * Compares the identity at the time of reading (`seen`) with the identity `now`:
 *   file, size, mtime or ctime   `seen` within a tick of its ctime,   result
 *   differ                       or during a write (written_then)
 *   yes                          -                                    changed
 *   no                           yes                                  suspect
 *   no                           no                                   valid
 * seen_at: the time by the file system's clock, taken before `seen`.
 */
enum limefile_validity limefile_validity(const struct limefile_identity *seen,
                                         const struct timespec *seen_at, bool written_then,
                                         const struct limefile_identity *now);

#endif
