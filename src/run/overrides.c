/*
 * overrides.c - the functions that override those of libc
 *
 * A function that changes a descriptor first removes its entry, and sets a new entry
 * afterwards. In between, reads go through the mount, also in a child that is forked then.
 */
#define _GNU_SOURCE
#include "limeplatform.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

int fcntl64(int, int, ...);
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off_t, size_t);

/* ---- open(2) and related calls ---- */

static int examine_opened(int fd, int flags)
{
    if (fd >= 0)
        limefs_run_examine(fd, flags);
    return fd;
}

static bool has_mode(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* Reads the argument after `flags`. */
#define MODE(mode, flags)            \
    mode_t mode = 0;                 \
    if (has_mode(flags)) {           \
        va_list list;                \
        va_start(list, flags);       \
        mode = va_arg(list, mode_t); \
        va_end(list);                \
    }

#define OPEN(name)                                                                \
    EXPORTED int name(const char *path, int flags, ...)                           \
    {                                                                             \
        MODE(mode, flags)                                                         \
        return examine_opened(limefs_run_libc()->open(path, flags, mode), flags); \
    }

#define OPENAT(name)                                                                       \
    EXPORTED int name(int dirfd, const char *path, int flags, ...)                         \
    {                                                                                      \
        MODE(mode, flags)                                                                  \
        return examine_opened(limefs_run_libc()->openat(dirfd, path, flags, mode), flags); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define OPEN_2(name)                                                          \
    EXPORTED int name(const char *path, int flags)                            \
    {                                                                         \
        return examine_opened(limefs_run_libc()->open_2(path, flags), flags); \
    }

#define OPENAT_2(name)                                                                 \
    EXPORTED int name(int dirfd, const char *path, int flags)                          \
    {                                                                                  \
        return examine_opened(limefs_run_libc()->openat_2(dirfd, path, flags), flags); \
    }

OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

/* ---- close and duplicate descriptors ---- */

EXPORTED int close(int fd)
{
    if (limefs_run_is_library_fd(fd)) { /* called by a loop that closes all descriptors */
        errno = EBADF;
        return -1;
    }
    limefs_run_remove(fd);
    return limefs_run_libc()->close(fd);
}

EXPORTED int close_range(unsigned first, unsigned last, int flags)
{
    if (!(flags & CLOSE_RANGE_CLOEXEC))
        limefs_run_remove_range(first, last);
    if (limefs_run_libc()->close_range) /* since glibc 2.34 */
        return limefs_run_libc()->close_range(first, last, flags);
    return (int)syscall(SYS_close_range, first, last, flags);
}

/* libc closes a stream's descriptor without calling close(). */
static void remove_stream(FILE *file)
{
    int saved_errno = errno;
    limefs_run_remove(fileno(file));
    errno = saved_errno;
}

EXPORTED int fclose(FILE *file)
{
    remove_stream(file);
    return limefs_run_libc()->fclose(file);
}

#define FREOPEN(name)                                                   \
    EXPORTED FILE *name(const char *path, const char *mode, FILE *file) \
    {                                                                   \
        remove_stream(file);                                            \
        return limefs_run_libc()->freopen(path, mode, file);            \
    }

FREOPEN(freopen)
FREOPEN(freopen64)

EXPORTED void closefrom(int first)
{
    limefs_run_remove_range(first < 0 ? 0 : (unsigned)first, UINT_MAX);
    if (limefs_run_libc()->closefrom)
        limefs_run_libc()->closefrom(first);
}

static int note_duplicate(int fd, int of)
{
    if (fd >= 0)
        limefs_run_copy_entry(fd, of);
    return fd;
}

EXPORTED int dup(int fd)
{
    return note_duplicate(limefs_run_libc()->dup(fd), fd);
}

/* Called before fd becomes a duplicate of `of`: the library gives up the number. */
static void release_number(int fd, int of)
{
    if (fd == of)
        return;
    limefs_run_yield_fd(fd);
    limefs_run_remove(fd);
}

EXPORTED int dup2(int fd, int new_fd)
{
    release_number(new_fd, fd);
    return note_duplicate(limefs_run_libc()->dup2(fd, new_fd), fd);
}

EXPORTED int dup3(int fd, int new_fd, int flags)
{
    release_number(new_fd, fd);
    return note_duplicate(limefs_run_libc()->dup3(fd, new_fd, flags), fd);
}

static int call_fcntl(int fd, int command, void *argument)
{
    int result = limefs_run_libc()->fcntl(fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        return note_duplicate(result, fd);
    if (command == F_SETFL && result == 0 && (int)(intptr_t)argument & O_DIRECT)
        limefs_run_read_by_mount(fd);
    return result;
}

#define FCNTL(name)                               \
    EXPORTED int name(int fd, int command, ...)   \
    {                                             \
        va_list list;                             \
        va_start(list, command);                  \
        void *argument = va_arg(list, void *);    \
        va_end(list);                             \
        return call_fcntl(fd, command, argument); \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

/* ---- read(2) and related calls ---- */

static bool read_buffer(int fd, void *buf, size_t n, off_t at, struct limefs_run_result *got)
{
    const struct iovec iov = {buf, n};
    return limefs_run_read(fd, &iov, 1, false, at, got);
}

static bool read_vector(int fd, const struct iovec *iov, int count, off_t at,
                        struct limefs_run_result *got)
{
    return limefs_run_read(fd, iov, count, true, at, got);
}

/* Reads without the mount if possible, otherwise with libc, and counts bytes of known files. */
#define READ(name, parameters, direct, libc_call)                                            \
    EXPORTED ssize_t name parameters                                                         \
    {                                                                                        \
        struct limefs_run_result got;                                                        \
        if (!limefs_run_is_known(fd))                                                        \
            return limefs_run_libc()->libc_call;                                             \
        return (direct) ? got.bytes : limefs_run_count(limefs_run_libc()->libc_call, false); \
    }

READ(read, (int fd, void *buf, size_t n), read_buffer(fd, buf, n, -1, &got), read(fd, buf, n))

READ(readv, (int fd, const struct iovec *iov, int count), read_vector(fd, iov, count, -1, &got),
     readv(fd, iov, count))

#define PREAD(name)                                     \
    READ(name, (int fd, void *buf, size_t n, off_t at), \
         at >= 0 && read_buffer(fd, buf, n, at, &got), pread(fd, buf, n, at))

PREAD(pread)
PREAD(pread64)

#define PREADV(name)                                                   \
    READ(name, (int fd, const struct iovec *iov, int count, off_t at), \
         at >= 0 && read_vector(fd, iov, count, at, &got), preadv(fd, iov, count, at))

PREADV(preadv)
PREADV(preadv64)

/* For preadv2(), offset -1 is the file position. Calls with flags go through the mount. */
#define PREADV2(name)                                                             \
    READ(name, (int fd, const struct iovec *iov, int count, off_t at, int flags), \
         flags == 0 && at >= -1 && read_vector(fd, iov, count, at, &got),         \
         preadv2(fd, iov, count, at, flags))

PREADV2(preadv2)
PREADV2(preadv64v2)

/* ---- programs that are built with _FORTIFY_SOURCE ---- */

EXPORTED ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
    return n > size ? limefs_run_libc()->read_chk(fd, buf, n, size) : read(fd, buf, n);
}

#define PREAD_CHK(name)                                                       \
    EXPORTED ssize_t name(int fd, void *buf, size_t n, off_t at, size_t size) \
    {                                                                         \
        return n > size ? limefs_run_libc()->pread_chk(fd, buf, n, at, size)  \
                        : pread(fd, buf, n, at);                              \
    }

PREAD_CHK(__pread_chk)
PREAD_CHK(__pread64_chk)
