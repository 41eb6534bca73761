/*
 * calls_fread.c - fread(3) of much at once
 *
 * What is asked for beyond what is in the stream's buffer, libc reads straight into the
 * program's memory by a system call of its own. Here the same is done by our read().
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
    LARGE = 16 * 1024, /* bytes; libc reads past a buffer of 4 KiB */

    /* libc's flags: the stream cannot be read, characters were given back, it is written. */
    NO_READS = 0x4,
    IN_BACKUP = 0x100,
    PUTTING = 0x800,
};

/* As libc has it: behind a stream stands which functions read it. */
struct with_functions {
    FILE file;
    const void *functions;
};

static const void *functions_of(const FILE *file)
{
    return ((const struct with_functions *)file)->functions;
}

static const void *reads_by_calls; /* those of a stream that reads by system calls */

/* At the start: nobody has stderr mapped. */
void limefs_run_fread_begin(void)
{
    reads_by_calls = functions_of(stderr);
}

/* Bytes in the buffer, or -1: leave it to libc. So are streams that it maps, or may map at
 * their first read ('m'), to the end: their position is libc's, and not the kernel's. */
static ssize_t buffered(const FILE *file)
{
    bool plain = functions_of(file) == reads_by_calls &&
                 !(file->_flags & (NO_READS | IN_BACKUP | PUTTING)) && file->_mode <= 0 &&
                 file->_IO_read_end >= file->_IO_read_ptr;
    return plain ? file->_IO_read_end - file->_IO_read_ptr : -1;
}

/* As libc does before it reads past the buffer: without one it would not see afterwards that a
 * character was given back, and tell a position that is further by that. */
static bool has_buffer(FILE *file)
{
    if (!file->_IO_buf_base && limefs_run_real()->doallocbuf)
        limefs_run_real()->doallocbuf(file);
    return file->_IO_buf_base != NULL;
}

/* As libc does when it reads past the buffer: what was in it does not lie before the position
 * any more, which is further by n. */
static void went_on(FILE *file, size_t n)
{
    file->_IO_read_base = file->_IO_read_ptr = file->_IO_read_end = file->_IO_buf_base;
    if (file->_offset >= 0)
        file->_offset += (off64_t)n;
}

/* As much as can be had past the buffer, which must be empty. What ends it, an error or the
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
        size_t past =
            buffered(file) == 0 && has_buffer(file) ? read_past(fd, to + done, n - done) : 0;
        if (past > 0)
            went_on(file, past);
        done += past;
    }
    return done < n ? done + real->fread_unlocked(to + done, 1, n - done, file) : done;
}

/* Of a record, as far as is known: read() looks closer. Else -1. */
static int record_of(FILE *file)
{
    int kept = errno, fd = limefs_run_real()->fileno(file);
    errno = kept;
    return limefs_run_is_known(fd) ? fd : -1;
}

static size_t read_items(void *to, size_t size, size_t count, FILE *file, bool lock)
{
    size_t n;
    const struct limefs_run_real *real = limefs_run_real();
    bool large = !__builtin_mul_overflow(size, count, &n) && n >= LARGE;
    int fd = large ? record_of(file) : -1;
    if (fd < 0)
        return lock ? real->fread(to, size, count, file)
                    : real->fread_unlocked(to, size, count, file);
    limefs_run_may_be_cancelled();
    int cancel = limefs_run_cancel_off(); /* the stream would stay locked */
    if (lock)
        flockfile(file);
    size_t got = read_stream(to, n, file, fd);
    if (lock)
        funlockfile(file);
    limefs_run_cancel_back(cancel);
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
