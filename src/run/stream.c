/*
 * stream.c - streams, as libc's read in ways that do not come by here
 *
 * A stream that reads a record is one of fopencookie(), whose functions read and seek by the
 * record's descriptor. Such a stream has no descriptor for fileno(): so who has which is kept
 * here. Any other is libc's own, standard input and those that libc opened before included.
 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STREAMS = 256,
    /* A larger one costs who seeks about, a smaller one who reads little at once. */
    BUFFER = 16 * 1024,
};

struct cookie {
    atomic_int *fd; /* in `streams` */
    char buffer[BUFFER];
};

/* Without a lock, which a fork() by another thread would leave closed. */
static struct {
    _Atomic(FILE *) file;
    atomic_int fd;
} streams[STREAMS];

static FILE *const taken = (FILE *)&streams; /* no stream's address */
static atomic_int used;                      /* places below it were, or are */

static int find(const FILE *file)
{
    int at = atomic_load(&used) - 1;
    while (at >= 0 && atomic_load(&streams[at].file) != file)
        at--;
    return at;
}

static int take_place(void)
{
    for (int i = 0; i < STREAMS; i++) {
        FILE *none = NULL;
        if (!atomic_compare_exchange_strong(&streams[i].file, &none, taken))
            continue;
        int seen = atomic_load(&used);
        while (seen <= i && !atomic_compare_exchange_weak(&used, &seen, i + 1))
            ;
        return i;
    }
    return -1;
}

/* ---- what the stream calls ---- */

static ssize_t stream_read(void *context, char *buf, size_t n)
{
    const struct cookie *cookie = context;
    return read(atomic_load(cookie->fd), buf, n);
}

static int stream_seek(void *context, off64_t *at, int whence)
{
    const struct cookie *cookie = context;
    off_t now = lseek(atomic_load(cookie->fd), *at, whence);
    if (now < 0)
        return -1;
    *at = now;
    return 0;
}

static int stream_close(void *context)
{
    struct cookie *cookie = context;
    int place = 0;
    while (&streams[place].fd != cookie->fd)
        place++;
    int fd = atomic_load(cookie->fd);
    atomic_store(&streams[place].file, NULL);
    free(cookie);
    return close(fd);
}

/* Takes fd over; NULL: it has not. */
static FILE *new_stream(int fd)
{
    const cookie_io_functions_t calls = {
        .read = stream_read, .seek = stream_seek, .close = stream_close};
    int place = take_place();
    struct cookie *cookie = place < 0 ? NULL : malloc(sizeof *cookie);
    if (cookie)
        cookie->fd = &streams[place].fd;
    FILE *file = cookie ? fopencookie(cookie, "r", calls) : NULL;
    if (file) {
        setvbuf(file, cookie->buffer, _IOFBF, BUFFER);
        atomic_store(&streams[place].fd, fd);
    } else {
        free(cookie);
    }
    if (place >= 0)
        atomic_store(&streams[place].file, file);
    return file;
}

/* ---- how they are opened ---- */

/* "r", with or without letters that change nothing for a record. */
static bool only_reads(const char *mode)
{
    return *mode == 'r' && strspn(mode + 1, "bcemx") == strlen(mode + 1);
}

/* A record that is read round the mount. */
static bool is_record(int fd)
{
    struct limefs_run_record *record = limefs_run_hold(fd);
    bool good = record && !atomic_load(&record->changed) && limefs_run_is(fd, record);
    if (record)
        limefs_run_let_go(record);
    return good;
}

/* What libc has opened, or a stream of ours in its place. */
static FILE *own_in_place(FILE *file, const char *mode)
{
    if (!file)
        return NULL;
    int kept = errno, fd = limefs_run_real()->fileno(file), flags = fcntl(fd, F_GETFL);
    limefs_run_look(fd, flags < 0 ? O_WRONLY : flags);
    if (only_reads(mode) && is_record(fd)) {
        int other = fcntl(fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
        FILE *own = other < 0 ? NULL : new_stream(other);
        if (own) {
            limefs_run_forget(fd);
            limefs_run_real()->fclose(file);
            file = own;
        } else if (other >= 0) {
            close(other);
        }
    }
    errno = kept;
    return file;
}

#define FOPEN(name)                                                      \
    EXPORTED FILE *name(const char *path, const char *mode)              \
    {                                                                    \
        return own_in_place(limefs_run_real()->fopen(path, mode), mode); \
    }

FOPEN(fopen)
FOPEN(fopen64)

EXPORTED FILE *fdopen(int fd, const char *mode)
{
    FILE *file = only_reads(mode) && is_record(fd) ? new_stream(fd) : NULL;
    return file ? file : limefs_run_real()->fdopen(fd, mode);
}

/* Another record, or file, for a stream of ours; it goes on by reading that, whatever it is. */
static FILE *opened_again(const char *path, const char *mode, FILE *file, int place)
{
    int fd = -1;
    if (path && only_reads(mode))
        fd = open(path, O_RDONLY | (strchr(mode, 'e') ? O_CLOEXEC : 0));
    else
        errno = EINVAL; /* it can be made to read alone */
    if (fd < 0) {
        int kept = errno;
        fclose(file);
        errno = kept;
        return NULL;
    }
    __fpurge(file);
    int old = atomic_exchange(&streams[place].fd, fd);
    rewind(file); /* also forgets its errors */
    close(old);
    return file;
}

#define FREOPEN(name)                                                   \
    EXPORTED FILE *name(const char *path, const char *mode, FILE *file) \
    {                                                                   \
        int place = find(file);                                         \
        if (place >= 0)                                                 \
            return opened_again(path, mode, file, place);               \
        limefs_run_forget(limefs_run_real()->fileno(file));             \
        return limefs_run_real()->freopen(path, mode, file);            \
    }

FREOPEN(freopen)
FREOPEN(freopen64)

int limefs_run_stream_fd(const FILE *file)
{
    int place = find(file);
    return place < 0 ? -1 : atomic_load(&streams[place].fd);
}

#define FILENO(name)                                                   \
    EXPORTED int name(FILE *file)                                      \
    {                                                                  \
        int kept = errno, fd = limefs_run_real()->fileno(file), place; \
        if (fd >= 0 || (place = find(file)) < 0)                       \
            return fd;                                                 \
        errno = kept;                                                  \
        return atomic_load(&streams[place].fd);                        \
    }

FILENO(fileno)
FILENO(fileno_unlocked)
