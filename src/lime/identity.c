/* identity.c - find out if a file has changed */
#define _GNU_SOURCE
#include "limeidentity.h"

#include <errno.h>
#include <fcntl.h>

struct limefile_identity limefile_identify(const struct stat *st)
{
    return (struct limefile_identity){
        .dev = st->st_dev,
        .ino = st->st_ino,
        .uid = st->st_uid,
        .mode = st->st_mode,
        .size = st->st_size,
        .mtime = st->st_mtim,
        .ctime = st->st_ctim,
    };
}

bool limefile_time_equal(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

unsigned limefile_identity_differences(const struct limefile_identity *a,
                                       const struct limefile_identity *b)
{
    return (a->dev == b->dev ? 0 : LIMEFILE_DEV) | (a->ino == b->ino ? 0 : LIMEFILE_INO) |
           (a->uid == b->uid ? 0 : LIMEFILE_UID) | (a->mode == b->mode ? 0 : LIMEFILE_MODE) |
           (a->size == b->size ? 0 : LIMEFILE_SIZE) |
           (limefile_time_equal(&a->mtime, &b->mtime) ? 0 : LIMEFILE_MTIME) |
           (limefile_time_equal(&a->ctime, &b->ctime) ? 0 : LIMEFILE_CTIME);
}

bool limefile_identity_equal(const struct limefile_identity *a,
                             const struct limefile_identity *b)
{
    return !(limefile_identity_differences(a, b) & (LIMEFILE_FILE | LIMEFILE_STATE));
}

bool limefile_identity_same_file(const struct limefile_identity *a,
                                 const struct limefile_identity *b)
{
    return !(limefile_identity_differences(a, b) & LIMEFILE_FILE);
}

bool limefile_identity_same_data(const struct limefile_identity *a,
                                 const struct limefile_identity *b)
{
    return !(limefile_identity_differences(a, b) &
             (LIMEFILE_FILE | LIMEFILE_SIZE | LIMEFILE_MTIME));
}

/* tv_nsec 0 suggests a file system with times in whole seconds, whose tick is a second. */
bool limefile_time_is_suspect(const struct timespec *time, const struct timespec *seen)
{
    const int64_t second = 1000000000, tick = 20000000;
    int64_t age = (int64_t)seen->tv_sec - time->tv_sec; /* can have any sign and size */
    if (age < -1 || age > 2)
        return age < 0;
    return age * second + seen->tv_nsec - time->tv_nsec < tick + (time->tv_nsec ? 0 : second);
}

/* The kernel grants a read lease only if no process has the file open for writing, or mapped
 * through such a descriptor. If a process opens the file for writing during the lease, the
 * kernel sends SIGIO to the lease's holder, and the open waits until the lease is released. */
static bool has_writer(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return errno == EAGAIN;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

bool limefile_is_being_written(int fd, const struct timespec *ctime)
{
    const int64_t longest = 60; /* seconds; limit for one write(2), which is at most 2 GiB */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)now.tv_sec - ctime->tv_sec;
    return age >= -1 && age <= longest && has_writer(fd);
}

enum limefile_validity limefile_validity(const struct limefile_identity *seen,
                                         const struct timespec *seen_at, bool written_then,
                                         const struct limefile_identity *now)
{
    if (!limefile_identity_equal(seen, now))
        return LIMEFILE_CHANGED;
    return written_then || limefile_time_is_suspect(&seen->ctime, seen_at) ? LIMEFILE_SUSPECT
                                                                           : LIMEFILE_VALID;
}
