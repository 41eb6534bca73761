/*
 * backend_local.c - reads by the daemon itself
 *
 * Large requests for what is not in memory go around the page cache (O_DIRECT): several of
 * them keep the disk busy, the bytes are copied once less, and they end up in memory once,
 * in the kernel's cache of this mount. What is in memory already, and small requests, are
 * read the ordinary way. The figures: docs/performance.md.
 */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- around the page cache ---- */

/* The container once more, for direct reads; -1 where the file system has no such thing. */
static int direct_fd(struct limefs_file *file)
{
    limefs_lock(&file->lock);
    if (file->direct == LIMEFS_DIRECT_UNTRIED)
        file->direct = limefile_open_direct(file->view->fd);
    int fd = file->direct;
    limefs_unlock(&file->lock);
    return fd;
}

ssize_t limefs_local_read(struct limefs_file *file, char *buf, size_t n, uint64_t at,
                          const char **bytes)
{
    struct limefile_fd unused;
    *bytes = buf;
    if (file->view->guise)
        return limefile_read_full(limefs_view_source(file->view, &unused), buf, n, at);
    if (n >= LIMEFILE_DIRECT_MIN && !limefile_is_cached(file->view->fd, at, n)) {
        int fd = direct_fd(file);
        ssize_t got = fd < 0 ? -EINVAL : limefile_read_around(fd, buf, n, at, bytes);
        if (got == (ssize_t)n)
            return got;
        /* Refused, or cut short: the ordinary way tells what is wrong. */
    }
    *bytes = buf;
    return limefile_fd_read(file->view->fd, buf, n, at);
}

int64_t limefs_file_seek(struct limefs_file *file, int64_t offset, int whence)
{
    if (file->face) { /* data up to the end */
        struct limefile_face_entry entry;
        limefile_face_entry(limefs_face_files(file->face), file->number, &entry);
        if (offset < 0 || (uint64_t)offset >= entry.bytes)
            return -ENXIO;
        return whence == SEEK_DATA ? offset : (int64_t)entry.bytes;
    }
    if (!file->view) {
        off_t at = lseek(file->fd, offset, whence);
        return at < 0 ? -errno : at;
    }
    int64_t bytes = (int64_t)file->record.bytes, begin = (int64_t)file->record.data_offset;
    if (offset < 0 || offset >= bytes)
        return -ENXIO;
    if (file->view->guise)
        return whence == SEEK_DATA ? offset : bytes;
    int64_t at = lseek(file->view->fd, begin + offset, whence);
    if (at < 0)
        return -errno; /* ENXIO: a hole to the end of the container */
    if (at - begin < bytes)
        return at - begin;
    /* Beyond this record: no more data, or the hole that every file ends with. */
    return whence == SEEK_DATA ? -ENXIO : bytes;
}
