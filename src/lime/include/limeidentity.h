/*
 * limeidentity.h - which file it is, and in what state: what fstat(2) tells of it at one
 * moment.
 *
 * The daemon, the job, lime stage and limefs-run compare what a file was with what it is. All
 * functions may be called by any thread; those that take no descriptor also by handlers of
 * signals.
 */
#ifndef LIMEFILE_IDENTITY_H
#define LIMEFILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

struct limefile_identity {
    uint64_t dev, ino;
    uint32_t uid, mode; /* mode: with the type */
    int64_t size;       /* bytes */
    struct timespec mtime, ctime;
};

/* In what two of them differ. */
enum {
    LIMEFILE_DEV = 1, /* the number means nothing on another host, or after a restart */
    LIMEFILE_INO = 2,
    LIMEFILE_UID = 4,
    LIMEFILE_MODE = 8,
    LIMEFILE_SIZE = 16,
    LIMEFILE_MTIME = 32,
    LIMEFILE_CTIME = 64,
    LIMEFILE_FILE = LIMEFILE_DEV | LIMEFILE_INO,
    LIMEFILE_STATE = LIMEFILE_SIZE | LIMEFILE_MTIME | LIMEFILE_CTIME,
};

struct limefile_identity limefile_identity_of(const struct stat *);

/* The LIMEFILE_... that differ, or'ed; 0: none. */
unsigned limefile_identity_differences(const struct limefile_identity *,
                                       const struct limefile_identity *);

/* The same file, and neither its data nor its attributes have changed. */
bool limefile_identity_equal(const struct limefile_identity *,
                             const struct limefile_identity *);

/* The same file, whatever was done to it. */
bool limefile_identity_same_file(const struct limefile_identity *,
                                 const struct limefile_identity *);

/* The same file, and its data have not changed; owner, mode or links may have. */
bool limefile_identity_same_data(const struct limefile_identity *,
                                 const struct limefile_identity *);

bool limefile_time_equal(const struct timespec *, const struct timespec *);

/* A change within a tick of the file system's clock leaves the same time behind: true if there
 * may be another one after the file was `seen`. */
bool limefile_time_is_racy(const struct timespec *time, const struct timespec *seen);

/* The kernel sets a file's times when a write(2) begins, or with the first of several stores
 * through a mapping, and not again at the end. Whether that may be going on still: the file has
 * that ctime, which is less than a minute old, and somebody has it open for writing. To be
 * asked after its times, and before the bytes that these are to vouch for are read. fd: open
 * for reading alone. A lease tells, which root gets of all files, and others of their own; of
 * no other it is known. Where there are none for another reason (NFS without a delegation), the
 * answer is yes. SIGIO, which whoever opens the file meanwhile causes, must be ignored. */
bool limefile_is_being_written(int fd, const struct timespec *ctime);

#endif
