/* stamp.c - is this still the file that was seen? */
#define _GNU_SOURCE
#include "limefs.h"

#include <errno.h>
#include <fcntl.h>

struct limefs_stamp limefs_stamp_of(const struct stat *st)
{
    return (struct limefs_stamp){
        .dev = st->st_dev,
        .ino = st->st_ino,
        .size = st->st_size,
        .mtime = st->st_mtim,
        .ctime = st->st_ctim,
        .type = st->st_mode & S_IFMT,
    };
}

bool limefs_time_is_same(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool limefs_stamp_same_file(const struct limefs_stamp *a, const struct limefs_stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

bool limefs_stamp_same_data(const struct limefs_stamp *a, const struct limefs_stamp *b)
{
    return limefs_stamp_same_file(a, b) && a->size == b->size &&
           limefs_time_is_same(&a->mtime, &b->mtime);
}

/* A file system that has whole seconds alone says so by each of its times. */
bool limefs_time_is_racy(const struct timespec *time, const struct timespec *seen)
{
    const int64_t second = 1000000000, tick = 20000000;
    int64_t age = (int64_t)seen->tv_sec - time->tv_sec; /* of any sign and size */
    if (age < -1 || age > 2)
        return age < 0;
    return age * second + seen->tv_nsec - time->tv_nsec < tick + (time->tv_nsec ? 0 : second);
}

/* The kernel gives a lease if nobody has the file open for writing, or mapped from such a
 * descriptor. A process that opens it for writing meanwhile waits until the lease is given
 * back, and we get a SIGIO, which main() ignores. */
static bool has_writer(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return errno == EAGAIN;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

bool limefs_stamp_is_moving(int fd, const struct timespec *ctime)
{
    const int64_t longest = 60; /* seconds of one write(2), which is of 2 GiB at most */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)now.tv_sec - ctime->tv_sec;
    return age >= -1 && age <= longest && has_writer(fd);
}

bool limefs_stamp_equal(const struct limefs_stamp *a, const struct limefs_stamp *b)
{
    return limefs_stamp_same_data(a, b) && limefs_time_is_same(&a->ctime, &b->ctime);
}
