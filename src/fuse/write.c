/* write.c - a request to change an open file, for a record or a file of the tree */
#define _GNU_SOURCE
#include "file.h"
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static ssize_t write_plain(struct limefs_file *file, const char *buf, size_t n, uint64_t offset)
{
    struct limefile_fd to;
    limefile_fd_init(&to, file->fd);
    int err = limefile_write_full(&to.source, buf, n, offset);
    return err ? err : (ssize_t)n;
}

ssize_t limefs_file_write(struct limefs *fs, struct limefs_file *file, const char *buf,
                          size_t n, uint64_t offset)
{
    if (file->target) {
        ssize_t put = limefs_target_write(fs, file->target, buf, n, offset);
        limefs_verify_forget(fs, file->view);
        return put;
    }
    return file->fd >= 0 ? write_plain(file, buf, n, offset) : -EBADF;
}

int limefs_file_sync(struct limefs *fs, struct limefs_file *file, bool closing)
{
    if (file->target)
        return limefs_target_sync(fs, file->target, closing);
    if (file->fd < 0)
        return 0;
    if (!closing)
        return fsync(file->fd) == 0 ? 0 : -errno;
    int fd = dup(file->fd); /* some file systems tell of late errors when a file is closed */
    return fd < 0 ? -errno : close(fd) == 0 ? 0 : -errno;
}

int limefs_file_allocate(struct limefs *fs, struct limefs_file *file, int mode, uint64_t offset,
                         uint64_t bytes)
{
    if (file->target) {
        int err = limefs_target_allocate(fs, file->target, mode, offset, bytes);
        limefs_verify_forget(fs, file->view);
        return err;
    }
    if (file->fd < 0)
        return -EBADF;
    return fallocate(file->fd, mode, (off_t)offset, (off_t)bytes) == 0 ? 0 : -errno;
}
