/*
 * stream.c - streams that are opened and closed
 *
 * They are libc's own, which opens, closes and reads by calls that do not come by here: small
 * pieces are the mount's, large ones are read past the buffer (calls_fread.c).
 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* 'm': libc maps the file. What follows a comma is not of single letters. */
static bool is_mapped(const char *mode)
{
    size_t letters = strcspn(mode, ",");
    return memchr(mode, 'm', letters) != NULL;
}

static FILE *opened(FILE *file, const char *mode)
{
    int kept = errno, fd = file ? limefs_run_real()->fileno(file) : -1;
    if (fd >= 0) {
        int flags = limefs_run_real()->fcntl(fd, F_GETFL);
        limefs_run_look(fd, flags < 0 ? O_WRONLY : flags);
    }
    if (fd >= 0 && is_mapped(mode))
        limefs_run_leave(fd);
    errno = kept;
    return file;
}

#define FOPEN(name)                                                \
    EXPORTED FILE *name(const char *path, const char *mode)        \
    {                                                              \
        return opened(limefs_run_real()->fopen(path, mode), mode); \
    }

FOPEN(fopen)
FOPEN(fopen64)

EXPORTED FILE *fdopen(int fd, const char *mode)
{
    FILE *file = limefs_run_real()->fdopen(fd, mode);
    if (file && is_mapped(mode))
        limefs_run_leave(fd);
    return file;
}

static void about_to_close(FILE *file)
{
    int kept = errno;
    limefs_run_forget(limefs_run_real()->fileno(file));
    errno = kept;
}

#define FREOPEN(name)                                                      \
    EXPORTED FILE *name(const char *path, const char *mode, FILE *file)    \
    {                                                                      \
        about_to_close(file);                                              \
        return opened(limefs_run_real()->freopen(path, mode, file), mode); \
    }

FREOPEN(freopen)
FREOPEN(freopen64)

EXPORTED int fclose(FILE *file)
{
    about_to_close(file);
    return limefs_run_real()->fclose(file);
}
