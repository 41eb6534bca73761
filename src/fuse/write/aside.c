/*
 * aside.c - inner records that are replaced: collected beside the container, which is then
 * written anew with them
 */
#define _GNU_SOURCE
#include "caller.h"
#include "descriptor.h"
#include "job.h"
#include "store.h"
#include "tree.h"
#include "writing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a file without a name ---- */

static int create_nameless(int folder)
{
    char in_folder[LIMEFILE_FD_PATH_MAX], path[64];
    int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        limefile_fd_path(folder, in_folder);
        snprintf(path, sizeof path, "%s/.limefs-XXXXXX", in_folder);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
    }
    return fd < 0 ? -errno : fd;
}

/* Of the container's owner, as if the bytes were in it already; also where who writes may make
 * no files in its folder. */
static int nameless(const struct limefs_writer *writer)
{
    struct stat st;
    const char *name;
    limefs_own_begin();
    int folder = limefs_writer_folder(writer, &name);
    int fd = folder < 0 ? folder : create_nameless(folder);
    if (fd >= 0 && geteuid() == 0 &&
        (fstat(writer->shared.fd, &st) != 0 || fchown(fd, st.st_uid, st.st_gid) != 0)) {
        int err = -errno;
        close(fd);
        fd = err;
    }
    if (folder >= 0)
        close(folder);
    limefs_own_end();
    return fd;
}

static void forget_times(struct limefs_target *target)
{
    target->times[0].tv_nsec = target->times[1].tv_nsec = UTIME_OMIT;
}

int limefs_aside_begin(struct limefs_target *target, const struct limefile_record *record,
                       uint64_t bytes, bool emptied)
{
    struct limefs_writer *writer = target->writer;
    struct limefs_change change;
    uint64_t kept = record->bytes < bytes ? record->bytes : bytes;
    int fd = nameless(writer);
    if (fd < 0)
        return fd;
    int err = limefile_copy(writer->shared.fd, record->data_offset, fd, 0, kept, NULL, NULL);
    if (!err && ftruncate(fd, (off_t)bytes) != 0)
        err = -errno;
    if (err) {
        close(fd);
        return err;
    }
    limefs_job_change(writer->fs, writer->view, &change, 0, 0, true);
    target->fd = fd;
    target->bytes = bytes;
    limefs_collected_begins(&target->collected, bytes, emptied);
    forget_times(target);
    limefs_job_changed(writer->fs, writer->view, &change);
    return 0;
}

int limefs_aside_resize(struct limefs_target *target, uint64_t bytes)
{
    if (ftruncate(target->fd, (off_t)bytes) != 0)
        return -errno;
    limefs_collected_cut(&target->collected, target->bytes, bytes);
    target->bytes = bytes;
    return 0;
}

/* ---- put into the container ---- */

/* The new file is the container, whatever fails. */
static int move_to(struct limefs_writer *writer, int fd)
{
    int err = dup3(fd, writer->shared.fd, O_CLOEXEC) < 0 ? -errno : 0;
    if (!err)
        err = limefs_view_move(writer->fs, writer->view, fd);
    close(fd);
    if (err)
        return err;
    limefs_container_rewritten(&writer->state);
    return limefs_writer_catch_up(writer);
}

int limefs_writer_rewrite(struct limefs_writer *writer, const struct limefile_record *record,
                          const struct limefile_piece *pieces, size_t count)
{
    const char *name;
    struct limefile_last last;
    struct limefs_change change;
    int fd = -1;
    if (limefile_editor_last(writer->editor, &last) == 0 &&
        (!last.committed || limefs_last_is_growing(&writer->last)))
        return -EBUSY;
    int err = limefs_writer_sync_store(writer); /* by ranks elsewhere, before it is read here */
    if (err)
        return err;
    limefs_own_begin();
    int folder = limefs_writer_folder(writer, &name);
    limefs_own_end();
    if (folder < 0)
        return folder;
    limefs_job_change(writer->fs, writer->view, &change, 0, UINT64_MAX, true);
    limefs_view_set_moving(writer->fs, writer->view, true);
    struct limefile_index *index = limefs_view_index(writer->fs, writer->view);
    limefs_own_begin();
    err = limefile_rewrite(folder, name, writer->shared.fd, record, index, pieces, count, NULL,
                           NULL, &fd);
    limefs_own_end();
    limefile_index_free(index);
    close(folder);
    int moved = fd < 0 ? err : move_to(writer, fd);
    if (fd >= 0)
        limefs_store_moved(writer->fs, writer->view);
    limefs_view_set_moving(writer->fs, writer->view, false);
    limefs_job_changed(writer->fs, writer->view, &change);
    return moved ? moved : err;
}

int limefs_aside_finish(struct limefs_target *target)
{
    struct limefile_record record;
    struct limefile_index *index;
    if (!limefs_collected_is_news(&target->collected))
        return 0;
    int err = limefs_collected_error(&target->collected);
    if (!err)
        err = limefs_writer_catch_up(target->writer);
    if (!err)
        err = limefs_writer_record(target->writer, target->ordinal, &record, &index);
    if (err)
        return err;
    const struct limefile_piece piece = {.fd = target->fd, .bytes = target->bytes};
    err = limefs_writer_rewrite(target->writer, &record, &piece, 1);
    limefile_index_free(index);
    if (err)
        return err;
    limefs_collected_puts(&target->collected);
    limefs_own_begin(); /* who was let set them has gone, perhaps */
    limefs_times_set(target->writer->fs, target->writer->view, target->times);
    limefs_own_end();
    forget_times(target);
    return 0;
}
