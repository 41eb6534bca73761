/*
 * limeidentity.h - identify a file and its state at one moment, by the values of fstat(2).
 *
 * The daemon, the job, lime stage and limefs-run use it to detect that a file has changed. All
 * functions are thread-safe; functions without a parameter fd are async-signal-safe.
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
    LIMEFILE_DEV = 1, /* can differ between hosts, and after a reboot, for the same file */
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

/* time: a file's mtime or ctime, read at the time `seen`. Returns true if the file can have
 * changed since `seen` without a new time, because all changes within a tick of the file
 * system's clock get the same time. */
bool limefile_time_is_suspect(const struct timespec *time, const struct timespec *seen);

/* Returns true if a write to the file can be in progress: its ctime is at most a minute old,
 * and a process has it open for writing. The kernel sets a file's times when a write(2) begins,
 * or at the first of several stores through a mapping, but not when they end. Call this
 * function after fstat(2), which returns ctime, and before reading the bytes. fd must be open
 * for reading only. The function tries to get a lease, which root can get on any file and other
 * users on their own. It returns true also if this fails with EAGAIN for another reason (NFS
 * without a delegation), and false after other errors, such as EACCES for a file of another
 * user. The caller must ignore SIGIO: the kernel sends it when a process opens the file during
 * the lease. */
bool limefile_is_being_written(int fd, const struct timespec *ctime);

/* Whether data that were read in the past are still those of the file. */
enum limefile_validity {
    LIMEFILE_VALID,
    LIMEFILE_CHANGED,
    LIMEFILE_SUSPECT, /* nothing differs, but the file can have changed without a new time */
};

/* Compares the identity at the time of reading (`seen`) with the identity `now`:
 *   file, size, mtime or ctime   ctime suspect at seen_at, or a   result
 *   differ                       write then (written_then)
 *   yes                          -                                changed
 *   no                           yes                              suspect
 *   no                           no                               valid
 * seen_at: the time by the file system's clock, taken before `seen`. written_then: the result
 * of limefile_is_being_written() at that time. */
enum limefile_validity limefile_validity(const struct limefile_identity *seen,
                                         const struct timespec *seen_at, bool written_then,
                                         const struct limefile_identity *now);

#endif
