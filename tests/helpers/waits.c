/*
 * waits.c - wrap system calls that can block on a file system, for a daemon built with LOCKS=1;
 * src/fuse/base/lock.c checks before each of them that no lock forbids blocking
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>

void limefs_lockcheck_blocking(const char *call);

#define WAITS(type, name, parameters, ...) \
    type __real_##name parameters;         \
    type __wrap_##name parameters;         \
    type __wrap_##name parameters          \
    {                                      \
        limefs_lockcheck_blocking(#name);  \
        return __real_##name(__VA_ARGS__); \
    }

WAITS(int, fstat64, (int fd, struct stat *st), fd, st)
WAITS(int, stat64, (const char *path, struct stat *st), path, st)
WAITS(int, lstat64, (const char *path, struct stat *st), path, st)
WAITS(int, fstatat64, (int fd, const char *path, struct stat *st, int flags), fd, path, st,
      flags)
WAITS(int, statx, (int fd, const char *path, int flags, unsigned mask, void *out), fd, path,
      flags, mask, out)
WAITS(int, fstatvfs64, (int fd, struct statvfs *st), fd, st)
WAITS(int, open64, (const char *path, int flags, mode_t mode), path, flags, mode)
WAITS(int, openat64, (int fd, const char *path, int flags, mode_t mode), fd, path, flags, mode)
WAITS(int, close, (int fd), fd)
WAITS(int, dup3, (int from, int to, int flags), from, to, flags)
WAITS(int, fsync, (int fd), fd)
WAITS(int, ftruncate64, (int fd, off_t bytes), fd, bytes)
WAITS(int, fallocate64, (int fd, int mode, off_t at, off_t n), fd, mode, at, n)
WAITS(ssize_t, pread64, (int fd, void *buf, size_t n, off_t at), fd, buf, n, at)
WAITS(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off_t at), fd, buf, n, at)
WAITS(int, linkat, (int a, const char *from, int b, const char *to, int flags), a, from, b, to,
      flags)
WAITS(int, unlinkat, (int fd, const char *path, int flags), fd, path, flags)
WAITS(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), a, from,
      b, to, flags)
WAITS(int, utimensat, (int fd, const char *path, const struct timespec *times, int flags), fd,
      path, times, flags)
WAITS(long, syscall, (long n, long a, long b, long c, long d, long e, long f), n, a, b, c, d, e,
      f)
