/* calls_read.c - read(2) and its like */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <unistd.h>

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off_t, size_t);

static bool read_one(int fd, void *buf, size_t n, off_t at, struct limefs_run_got *got)
{
    const struct iovec iov = {buf, n};
    return limefs_run_read(fd, &iov, 1, false, at, got);
}

static bool read_many(int fd, const struct iovec *iov, int count, off_t at,
                      struct limefs_run_got *got)
{
    return limefs_run_read(fd, iov, count, true, at, got);
}

/* Round the mount, or else by libc's function, which is counted if the file is a mount's. */
#define CALL(name, parameters, round, by_libc)                                            \
    EXPORTED ssize_t name parameters                                                      \
    {                                                                                     \
        struct limefs_run_got got;                                                        \
        if (!limefs_run_is_known(fd))                                                     \
            return limefs_run_real()->by_libc;                                            \
        return (round) ? got.bytes : limefs_run_count(limefs_run_real()->by_libc, false); \
    }

CALL(read, (int fd, void *buf, size_t n), read_one(fd, buf, n, -1, &got), read(fd, buf, n))

CALL(readv, (int fd, const struct iovec *iov, int count), read_many(fd, iov, count, -1, &got),
     readv(fd, iov, count))

#define PREAD(name)                                     \
    CALL(name, (int fd, void *buf, size_t n, off_t at), \
         at >= 0 && read_one(fd, buf, n, at, &got), pread(fd, buf, n, at))

PREAD(pread)
PREAD(pread64)

#define PREADV(name)                                                   \
    CALL(name, (int fd, const struct iovec *iov, int count, off_t at), \
         at >= 0 && read_many(fd, iov, count, at, &got), preadv(fd, iov, count, at))

PREADV(preadv)
PREADV(preadv64)

/* -1 is the descriptor's position here. What flags ask for, the mount is asked. */
#define PREADV2(name)                                                             \
    CALL(name, (int fd, const struct iovec *iov, int count, off_t at, int flags), \
         flags == 0 && at >= -1 && read_many(fd, iov, count, at, &got),           \
         preadv2(fd, iov, count, at, flags))

PREADV2(preadv2)
PREADV2(preadv64v2)

/* ---- programs that are built with _FORTIFY_SOURCE ---- */

EXPORTED ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
    return n > room ? limefs_run_real()->read_chk(fd, buf, n, room) : read(fd, buf, n);
}

#define PREAD_CHK(name)                                                       \
    EXPORTED ssize_t name(int fd, void *buf, size_t n, off_t at, size_t room) \
    {                                                                         \
        return n > room ? limefs_run_real()->pread_chk(fd, buf, n, at, room)  \
                        : pread(fd, buf, n, at);                              \
    }

PREAD_CHK(__pread_chk)
PREAD_CHK(__pread64_chk)
