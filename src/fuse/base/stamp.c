/* stamp.c - is this still the file that was seen? */
#include "limefs.h"

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

bool limefs_stamp_equal(const struct limefs_stamp *a, const struct limefs_stamp *b)
{
    return limefs_stamp_same_data(a, b) && limefs_time_is_same(&a->ctime, &b->ctime);
}
