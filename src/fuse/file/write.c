/* write.c - a request to change an open file, for a record or a file of the tree */
#define _GNU_SOURCE
#include "append.h"
#include "file.h"
#include "told.h"
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

ssize_t limefs_file_write(struct limefs *fs, struct limefs_file *file, const char *buf,
                          size_t n, uint64_t offset)
{
    if (file->target) {
        struct limefs_face_change change;
        limefs_face_change(fs, file->view, file->record.ordinal, &change);
        ssize_t put = limefs_target_write(fs, file->target, buf, n, offset);
        limefs_verify_forget(fs, file->view);
        limefs_face_changed(fs, file->view, &change);
        return put;
    }
    return file->fd >= 0 ? limefs_append_write(fs, file->node, file->fd, buf, n, offset)
                         : -EBADF;
}

int limefs_file_sync(struct limefs *fs, struct limefs_file *file, bool closing)
{
    if (file->target)
        return limefs_target_sync(fs, file->target, closing);
    if (file->fd < 0)
        return 0;
    if (!closing)
        return fsync(file->fd) == 0 ? 0 : -errno;
    limefs_append_flushed(fs, file->node);
    limefs_told_note(fs, file->node, file->fd);
    int fd = dup(file->fd); /* some file systems tell of late errors when a file is closed */
    return fd < 0 ? -errno : close(fd) == 0 ? 0 : -errno;
}

int limefs_file_allocate(struct limefs *fs, struct limefs_file *file, int mode, uint64_t offset,
                         uint64_t bytes)
{
    if (file->target) {
        struct limefs_face_change change;
        limefs_face_change(fs, file->view, file->record.ordinal, &change);
        int err = limefs_target_allocate(fs, file->target, mode, offset, bytes);
        limefs_verify_forget(fs, file->view);
        limefs_face_changed(fs, file->view, &change);
        return err;
    }
    if (file->fd < 0)
        return -EBADF;
    return limefs_append_allocate(fs, file->node, file->fd, mode, offset, bytes);
}
