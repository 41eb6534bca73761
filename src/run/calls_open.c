/* calls_open.c - open(2) and its like */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);

static int looked_at(int fd, int flags)
{
    if (fd >= 0)
        limefs_run_look(fd, flags);
    return fd;
}

static bool has_mode(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* The argument after `flags`. */
#define MODE(mode, flags)            \
    mode_t mode = 0;                 \
    if (has_mode(flags)) {           \
        va_list list;                \
        va_start(list, flags);       \
        mode = va_arg(list, mode_t); \
        va_end(list);                \
    }

#define OPEN(name)                                                           \
    EXPORTED int name(const char *path, int flags, ...)                      \
    {                                                                        \
        MODE(mode, flags)                                                    \
        return looked_at(limefs_run_real()->open(path, flags, mode), flags); \
    }

#define OPENAT(name)                                                                   \
    EXPORTED int name(int folder, const char *path, int flags, ...)                    \
    {                                                                                  \
        MODE(mode, flags)                                                              \
        return looked_at(limefs_run_real()->openat(folder, path, flags, mode), flags); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define OPEN_2(name)                                                     \
    EXPORTED int name(const char *path, int flags)                       \
    {                                                                    \
        return looked_at(limefs_run_real()->open_2(path, flags), flags); \
    }

#define OPENAT_2(name)                                                             \
    EXPORTED int name(int folder, const char *path, int flags)                     \
    {                                                                              \
        return looked_at(limefs_run_real()->openat_2(folder, path, flags), flags); \
    }

OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)
