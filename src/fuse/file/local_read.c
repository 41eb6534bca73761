/*
 * local_read.c - reads a container without the job
 *
 * Large requests for bytes that are not in memory bypass the page cache (O_DIRECT). Several
 * such requests keep the disk busy, the bytes are copied once less, and memory holds them only
 * once: in the page cache of the mount. All other requests use the page cache.
 */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Returns a descriptor for direct reads, or < 0 if the file system does not support them. */
static int get_direct_fd(struct limefs_file *file)
{
    limefs_lock(&file->lock);
    if (file->direct_fd == LIMEFS_DIRECT_UNTRIED)
        file->direct_fd = limefile_open_direct(file->snap->fd);
    int fd = file->direct_fd;
    limefs_unlock(&file->lock);
    return fd;
}

ssize_t limefs_local_read(struct limefs_file *file, char *buf, size_t n, uint64_t at,
                          const char **bytes)
{
    struct limefile_fd unused;
    *bytes = buf;
    if (file->snap->adapter)
        return limefile_read_full(limefs_snapshot_source(file->snap, &unused), buf, n, at);
    if (n >= LIMEFILE_DIRECT_MIN && !limefile_is_cached(file->snap->fd, at, n)) {
        int fd = get_direct_fd(file);
        ssize_t got = fd < 0 ? -EINVAL : limefile_read_direct(fd, buf, n, at, bytes);
        if (got == (ssize_t)n)
            return got;
        /* If the direct read failed or is short, a read through the page cache shows why. */
    }
    *bytes = buf;
    return limefile_fd_read(file->snap->fd, buf, n, at);
}

int64_t limefs_file_seek(struct limefs_file *file, int64_t offset, int whence)
{
    if (file->export) { /* an export has no holes */
        struct limefile_export_entry entry;
        limefile_export_entry(limefs_export_files(file->export), file->number, &entry);
        if (offset < 0 || (uint64_t)offset >= entry.bytes)
            return -ENXIO;
        return whence == SEEK_DATA ? offset : (int64_t)entry.bytes;
    }
    if (!file->snap) {
        off_t at = lseek(file->fd, offset, whence);
        return at < 0 ? -errno : at;
    }
    int64_t bytes = (int64_t)file->record.bytes, begin = (int64_t)file->record.data_offset;
    if (offset < 0 || offset >= bytes)
        return -ENXIO;
    if (file->snap->adapter)
        return whence == SEEK_DATA ? offset : bytes;
    int64_t at = lseek(file->snap->fd, begin + offset, whence);
    if (at < 0)
        return -errno; /* ENXIO: a hole to the end of the container */
    if (at - begin < bytes)
        return at - begin;
    /* `at` is beyond the record, which has no more data, or no hole but the one at its end. */
    return whence == SEEK_DATA ? -ENXIO : bytes;
}
