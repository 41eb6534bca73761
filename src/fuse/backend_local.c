/* backend_local.c - reads by the daemon itself */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <syslog.h>
#include <unistd.h>

/* How often a read is tried again when the container changes underneath it. */
enum {
    READ_TRIES = 3,
};

static ssize_t read_fd(int fd, void *buf, size_t n, uint64_t offset)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, (char *)buf + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static int check(struct limefs_file *file)
{
    pthread_mutex_lock(&file->lock);
    int err = limefs_view_check(file->view, &file->record, &file->checked);
    pthread_mutex_unlock(&file->lock);
    return err;
}

/* Looks at the container after the read, so that what was read is what was there. */
static ssize_t read_record(struct limefs_file *file, void *buf, size_t n, uint64_t offset)
{
    const struct limefile_record *record = &file->record;
    if (offset >= record->bytes)
        return 0;
    if (n > record->bytes - offset)
        n = (size_t)(record->bytes - offset);
    for (int i = 0; i < READ_TRIES; i++) {
        ssize_t got = read_fd(file->view->fd, buf, n, record->data_offset + offset);
        if (got < 0)
            return got;
        int err = check(file);
        if (err)
            return err;
        if ((size_t)got == n)
            return got;
    }
    return -EIO;
}

ssize_t limefs_file_read(struct limefs_file *file, void *buf, size_t n, uint64_t offset)
{
    if (!file->view)
        return offset > INT64_MAX ? 0 : read_fd(file->fd, buf, n, offset);
    ssize_t got = read_record(file, buf, n, offset);
    if (got < 0)
        limefs_log(LOG_WARNING, "%s: record %llu: read at %llu: %s",
                   file->view->node->name[0] ? file->view->node->name : "container",
                   (unsigned long long)file->record.ordinal, (unsigned long long)offset,
                   got == -ESTALE ? "the container was changed in place; open it again"
                                  : limefile_strerror((int)got));
    return got;
}

int64_t limefs_file_seek(struct limefs_file *file, int64_t offset, int whence)
{
    if (!file->view) {
        off_t at = lseek(file->fd, offset, whence);
        return at < 0 ? -errno : at;
    }
    int64_t bytes = (int64_t)file->record.bytes, begin = (int64_t)file->record.data_offset;
    if (offset < 0 || offset >= bytes)
        return -ENXIO;
    int64_t at = lseek(file->view->fd, begin + offset, whence);
    if (at < 0)
        return -errno; /* ENXIO: a hole to the end of the container */
    if (at - begin < bytes)
        return at - begin;
    /* Beyond this record: no more data, or the hole that every file ends with. */
    return whence == SEEK_DATA ? -ENXIO : bytes;
}
