/* calls_fd.c - descriptors that are closed and duplicated, and advice on them
 *
 * What is known of a number is forgotten before it changes, and noted after: in between, and to
 * a child that is forked in between, the mount has it. */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

int fcntl64(int, int, ...);

EXPORTED int close(int fd)
{
    if (limefs_run_is_own(fd)) { /* a loop that closes all there are */
        errno = EBADF;
        return -1;
    }
    limefs_run_forget(fd);
    return limefs_run_real()->close(fd);
}

EXPORTED int close_range(unsigned first, unsigned last, int flags)
{
    if (!(flags & CLOSE_RANGE_CLOEXEC))
        limefs_run_forget_range(first, last);
    if (limefs_run_real()->close_range) /* of glibc 2.34 */
        return limefs_run_real()->close_range(first, last, flags);
    return (int)syscall(SYS_close_range, first, last, flags);
}

/* The C library closes a stream's descriptor by a call of its own. */
static void forget_stream(FILE *file)
{
    int kept = errno;
    limefs_run_forget(fileno(file));
    errno = kept;
}

EXPORTED int fclose(FILE *file)
{
    forget_stream(file);
    return limefs_run_real()->fclose(file);
}

#define FREOPEN(name)                                                   \
    EXPORTED FILE *name(const char *path, const char *mode, FILE *file) \
    {                                                                   \
        forget_stream(file);                                            \
        return limefs_run_real()->freopen(path, mode, file);            \
    }

FREOPEN(freopen)
FREOPEN(freopen64)

EXPORTED void closefrom(int first)
{
    limefs_run_forget_range(first < 0 ? 0 : (unsigned)first, UINT_MAX);
    if (limefs_run_real()->closefrom)
        limefs_run_real()->closefrom(first);
}

static int duplicated(int fd, int of)
{
    if (fd >= 0)
        limefs_run_note_same(fd, of);
    return fd;
}

EXPORTED int dup(int fd)
{
    return duplicated(limefs_run_real()->dup(fd), fd);
}

static void make_way(int fd, int of)
{
    if (fd == of)
        return;
    limefs_run_give_up(fd);
    limefs_run_forget(fd);
}

EXPORTED int dup2(int fd, int other)
{
    make_way(other, fd);
    return duplicated(limefs_run_real()->dup2(fd, other), fd);
}

EXPORTED int dup3(int fd, int other, int flags)
{
    make_way(other, fd);
    return duplicated(limefs_run_real()->dup3(fd, other, flags), fd);
}

static int control(int fd, int command, void *argument)
{
    int result = limefs_run_real()->fcntl(fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        return duplicated(result, fd);
    if (command == F_SETFL && result == 0 && (int)(intptr_t)argument & O_DIRECT)
        limefs_run_leave(fd);
    return result;
}

#define FCNTL(name)                             \
    EXPORTED int name(int fd, int command, ...) \
    {                                           \
        va_list list;                           \
        va_start(list, command);                \
        void *argument = va_arg(list, void *);  \
        va_end(list);                           \
        return control(fd, command, argument);  \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

/* The container's pages are those that are read; the mount may have some, too. */
#define ADVISE(name)                                                                     \
    EXPORTED int name(int fd, off_t at, off_t bytes, int advice)                         \
    {                                                                                    \
        int err;                                                                         \
        if (!limefs_run_is_known(fd) || !limefs_run_advise(fd, at, bytes, advice, &err)) \
            return limefs_run_real()->posix_fadvise(fd, at, bytes, advice);              \
        if (advice == POSIX_FADV_DONTNEED)                                               \
            limefs_run_real()->posix_fadvise(fd, at, bytes, advice);                     \
        return err;                                                                      \
    }

ADVISE(posix_fadvise)
ADVISE(posix_fadvise64)

EXPORTED ssize_t readahead(int fd, off64_t at, size_t bytes)
{
    int err;
    if (!limefs_run_is_known(fd) || bytes == 0 || bytes > SSIZE_MAX ||
        !limefs_run_advise(fd, at, (off_t)bytes, POSIX_FADV_WILLNEED, &err))
        return limefs_run_real()->readahead(fd, at, bytes);
    errno = err;
    return err ? -1 : 0;
}
