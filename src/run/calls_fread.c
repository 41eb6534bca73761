/*
 * calls_fread.c - fread(3) of much at once
 *
 * libc reads the streams of fopencookie() by their buffer alone, a copy more and 16 KiB at a
 * time. What is asked for beyond what is in the buffer is read into the program's memory.
 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <stdio_ext.h>
#include <unistd.h>

#undef fread_unlocked /* a macro in some of libc's headers */

size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);

enum {
    LARGE = 64 * 1024,
    IN_BACKUP = 0x100, /* libc's flag: characters were given back */
};

/* Bytes in the buffer, or -1: leave it to libc. */
static ssize_t buffered(const FILE *file)
{
    return file->_flags & IN_BACKUP || file->_IO_read_end < file->_IO_read_ptr
               ? -1
               : file->_IO_read_end - file->_IO_read_ptr;
}

/* As much as can be had without the buffer, which must be empty. What ends it, an error or the
 * end, libc meets again. */
static size_t read_past(int fd, char *to, size_t n)
{
    size_t done = 0;
    ssize_t got = 1;
    int kept = errno;
    while (n - done >= LARGE && got > 0) {
        got = read(fd, to + done, n - done);
        done += got > 0 ? (size_t)got : 0;
    }
    errno = kept;
    return done;
}

/* With the stream locked. */
static size_t read_stream(char *to, size_t n, FILE *file, int fd)
{
    const struct limefs_run_real *real = limefs_run_real();
    ssize_t have = buffered(file);
    size_t done = 0;
    if (have >= 0 && n - (size_t)have >= LARGE && (size_t)have < n && !feof_unlocked(file)) {
        if (have > 0)
            done = real->fread_unlocked(to, 1, (size_t)have, file);
        if (buffered(file) == 0)
            done += read_past(fd, to + done, n - done);
    }
    return done < n ? done + real->fread_unlocked(to + done, 1, n - done, file) : done;
}

static size_t read_items(void *to, size_t size, size_t count, FILE *file, bool lock)
{
    size_t n;
    const struct limefs_run_real *real = limefs_run_real();
    int fd = limefs_run_stream_fd(file);
    if (fd < 0 || __builtin_mul_overflow(size, count, &n) || n < LARGE)
        return lock ? real->fread(to, size, count, file)
                    : real->fread_unlocked(to, size, count, file);
    if (lock)
        flockfile(file);
    size_t got = read_stream(to, n, file, fd);
    if (lock)
        funlockfile(file);
    return got / size;
}

EXPORTED size_t fread(void *to, size_t size, size_t count, FILE *file)
{
    return read_items(to, size, count, file, true);
}

EXPORTED size_t fread_unlocked(void *to, size_t size, size_t count, FILE *file)
{
    return read_items(to, size, count, file, false);
}

static bool fits(size_t room, size_t size, size_t count)
{
    size_t n;
    return !__builtin_mul_overflow(size, count, &n) && n <= room;
}

EXPORTED size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *file)
{
    return fits(room, size, count) ? read_items(to, size, count, file, true)
                                   : limefs_run_real()->fread_chk(to, room, size, count, file);
}

EXPORTED size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count,
                                     FILE *file)
{
    return fits(room, size, count)
               ? read_items(to, size, count, file, false)
               : limefs_run_real()->fread_unlocked_chk(to, room, size, count, file);
}
