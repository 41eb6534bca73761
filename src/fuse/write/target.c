/* target.c - bytes that are written to records */
#define _GNU_SOURCE
#include "job.h"
#include "store.h"
#include "writing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/* The lock, shared, once it was had alone to catch up. */
void limefs_writer_share_anew(struct limefs_writer *writer)
{
    limefs_leave(&writer->lock);
    limefs_take(&writer->lock);
    limefs_writer_catch_up(writer);
    limefs_leave(&writer->lock);
    limefs_share(&writer->lock);
}

/* The lock, shared, also on error: the container cannot be written to. */
int limefs_writer_share(struct limefs_writer *writer)
{
    limefs_share(&writer->lock);
    int err = limefs_writer_check(writer);
    if (!err || (!limefs_container_is_behind(&writer->state) && !limefs_writer_added(writer)))
        return err;
    limefs_writer_share_anew(writer);
    return limefs_writer_check(writer);
}

static void raise_to(_Atomic uint64_t *length, uint64_t end)
{
    uint64_t now = *length;
    while (now < end && !atomic_compare_exchange_weak(length, &now, end))
        ;
}

/* ---- the three kinds ---- */

static int write_aside(struct limefs_target *target, const char *buf, size_t n, uint64_t offset)
{
    int err = limefile_fd_write(target->fd, buf, n, offset);
    if (err)
        return err;
    raise_to(&target->bytes, offset + n);
    limefs_collected_wrote(&target->collected);
    return 0;
}

/* Through the job, or by ourselves. */
static int write_bytes(struct limefs_target *target, const char *buf, size_t n, uint64_t at)
{
    struct limefs_writer *writer = target->writer;
    int taken = limefs_store_put(writer->fs, &writer->shared, &target->run, buf, n, at);
    if (taken)
        return taken < 0 ? taken : 0;
    return limefile_fd_stream(writer->shared.fd, buf, n, at);
}

static int write_in_place(struct limefs_target *target, const char *buf, size_t n, uint64_t at)
{
    struct limefs_writer *writer = target->writer;
    struct limefs_change change;
    limefs_job_change(writer->fs, writer->view, &change, at, at + n, false);
    int err = write_bytes(target, buf, n, at);
    limefs_job_changed(writer->fs, writer->view, &change);
    return err;
}

static int write_last(struct limefs_target *target, const struct limefile_last *last,
                      const char *buf, size_t n, uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    int err = write_in_place(target, buf, n, last->data_offset + offset);
    if (!err)
        raise_to(&writer->length, offset + n);
    return err;
}

int limefs_writer_may_append(const struct limefs_writer *writer, uint64_t ordinal)
{
    char path[PATH_MAX];
    struct limefile_last last;
    const struct limefs_target *target = limefs_writer_target(writer, ordinal);
    if (limefs_writer_is_last(writer, ordinal, &last) ||
        (target && limefs_collected_is(&target->collected)))
        return 0;
    limefs_log(LOG_ERR,
               "%s: record %llu: append: only the last record can grow where it is; write it "
               "anew (cp), or use lime replace",
               limefs_writer_label(writer, path, sizeof path), (unsigned long long)ordinal);
    return -EPERM;
}

/* The record is to grow before this can be written. */
static const int beyond = 1;

static int write_inner(struct limefs_target *target, const char *buf, size_t n, uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_record record;
    struct limefile_index *index;
    int err = limefs_writer_record(writer, target->ordinal, &record, &index);
    if (err)
        return err;
    err = offset + n > record.bytes
              ? beyond
              : write_in_place(target, buf, n, record.data_offset + offset);
    limefile_index_free(index);
    return err;
}

/* ---- growth ---- */

/* An inner record that is to become longer is collected beside the container. With the lock
 * alone. */
static int grow_inner(struct limefs_target *target, uint64_t end)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_record record;
    struct limefile_index *index;
    int err =
        limefs_collected_error(&target->collected); /* what comes now would hide the gap */
    if (!err)
        err = limefs_writer_check(writer);
    if (!err)
        err = limefs_writer_sync_store(writer); /* by ranks elsewhere, before it is read here */
    if (!err)
        err = limefs_writer_record(writer, target->ordinal, &record, &index);
    if (err)
        return err;
    if (end > record.bytes)
        err = limefs_aside_begin(target, &record, record.bytes, false);
    limefile_index_free(index);
    if (err) {
        char path[PATH_MAX];
        limefs_log(LOG_ERR,
                   "%s: record %llu: it is not the last one, and to grow it is "
                   "collected beside the container: %s",
                   limefs_writer_label(writer, path, sizeof path),
                   (unsigned long long)target->ordinal, limefile_strerror(err));
        limefs_view_renew(writer->fs, writer->view, target->ordinal); /* it may show more */
    }
    return err;
}

/* A committed record says so before it grows; until somebody commits it again, which may be at
 * once.
 */
static int begin_growth(struct limefs_target *target, uint64_t end)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    int err = 0;
    limefs_leave(&writer->lock);
    limefs_take(&writer->lock);
    if (limefs_collected_is(&target->collected)) {
        /* Somebody was faster. */
    } else if (!limefs_writer_is_last(writer, target->ordinal, &last)) {
        err = grow_inner(target, end);
    } else if ((err = limefs_last_error(&writer->last)) != 0) {
        /* Somebody else has failed meanwhile: what comes now would hide the gap. */
    } else if (!limefs_last_is_growing(&writer->last) && end > last.bytes) {
        err = limefile_growth_begin(writer->editor);
        if (!err)
            limefs_last_grows(&writer->last);
    }
    limefs_leave(&writer->lock);
    limefs_share(&writer->lock);
    return err;
}

/* `beyond`, if it must begin to grow. */
static int write_where_it_is(struct limefs_target *target, const char *buf, size_t n,
                             uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    int err;
    if (limefs_collected_is(&target->collected))
        return write_aside(target, buf, n, offset);
    if (!limefs_writer_is_last(writer, target->ordinal, &last))
        err = write_inner(target, buf, n, offset);
    else if ((err = limefs_last_error(&writer->last)) != 0)
        return err; /* what comes now would hide the gap */
    else if (last.committed && !limefs_last_is_growing(&writer->last) &&
             offset + n > last.bytes)
        err = beyond;
    else
        err = write_last(target, &last, buf, n, offset);
    if (err != beyond)
        limefs_sync_due(&writer->shared);
    return err;
}

static int write_locked(struct limefs_target *target, const char *buf, size_t n,
                        uint64_t offset)
{
    int err;
    while ((err = write_where_it_is(target, buf, n, offset)) == beyond) {
        err = begin_growth(target, offset + n); /* others may do anything meanwhile */
        if (err)
            return err;
    }
    return err;
}

/* What was to be written is not there, for whatever reason: what is collected, or grows, or was
 * to grow, has a gap. */
static void note_gap(struct limefs_target *target, uint64_t end, int err)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    struct limefile_record record;
    struct limefile_index *index;
    if (limefs_collected_is(&target->collected)) {
        limefs_collected_fails(&target->collected, err, false);
    } else if (writer->editor && limefs_writer_is_last(writer, target->ordinal, &last)) {
        if (end > last.bytes)
            limefs_last_fails(&writer->last, err, true);
    } else if (limefs_writer_record(writer, target->ordinal, &record, &index) == 0) {
        limefs_collected_fails(&target->collected, err, end > record.bytes);
        limefile_index_free(index);
    }
}

ssize_t limefs_target_write(struct limefs *fs, struct limefs_target *target, const char *buf,
                            size_t n, uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    if (offset > LIMEFILE_BYTES_MAX || n > LIMEFILE_BYTES_MAX - offset)
        return -EFBIG;
    int err = limefs_writer_share(writer);
    if (!err)
        err = write_locked(target, buf, n, offset);
    if (err)
        note_gap(target, offset + n, err);
    limefs_leave(&writer->lock);
    if (fs->options.direct_io) /* a time that was set before is over, and no kernel says so */
        target->noted_mtime = LIMEFS_NO_MTIME;
    if (err)
        target->error = err;
    else
        atomic_fetch_add_explicit(&fs->stats.local_written_bytes, n, memory_order_relaxed);
    return err ? err : (ssize_t)n;
}

/* ---- room ---- */

/* What fallocate() got behind the end before it failed. */
static void give_back(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && ftruncate(fd, st.st_size) != 0)
        limefs_log(LOG_WARNING, "fallocate failed, and its blocks are not given back: %s",
                   strerror(errno));
}

static int allocate_at(struct limefs_writer *writer, int fd, int mode, uint64_t at,
                       uint64_t offset, uint64_t room)
{
    struct limefs_change change;
    int err = 0;
    limefs_sync_due(&writer->shared);
    limefs_job_change(writer->fs, writer->view, &change, at, at + room, true);
    if (room > offset && fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)(at + offset),
                                   (off_t)(room - offset)) != 0) {
        err = -errno;
        give_back(fd);
    }
    limefs_job_changed(writer->fs, writer->view, &change);
    return err;
}

static int allocate(struct limefs_target *target, int mode, uint64_t offset, uint64_t bytes)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last last;
    struct limefs_place place;
    uint64_t end = offset + bytes;
    bool grows = !(mode & FALLOC_FL_KEEP_SIZE);
    int err = 0;
    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        return -EOPNOTSUPP;
    if (grows && !limefs_collected_is(&target->collected) &&
        !limefs_writer_is_last(writer, target->ordinal, &last))
        err = grow_inner(target, end);
    if (!err)
        err = limefs_place_of(writer, target->ordinal, &place);
    if (err)
        return err;
    bool collected = limefs_collected_is(&target->collected);
    bool longer = end > place.bytes;
    /* What ranks got ahead goes first: with it, what is allocated now would be cut off later.
     */
    if (longer && grows && !collected && limefs_last_is_growing(&writer->last))
        err = limefile_trim(writer->editor, writer->length);
    if (err)
        return err;
    err = allocate_at(writer, collected ? place.fd : writer->shared.fd, mode, place.at, offset,
                      longer && !grows ? place.bytes : end); /* none behind the record */
    if (err)
        return err; /* before the length has changed */
    if (collected)
        limefs_collected_wrote(&target->collected);
    return grows && longer ? limefs_writer_resize(writer, target->ordinal, end, false) : 0;
}

int limefs_target_allocate(struct limefs *fs, struct limefs_target *target, int mode,
                           uint64_t offset, uint64_t bytes)
{
    struct limefs_writer *writer = target->writer;
    (void)fs;
    if (offset > LIMEFILE_BYTES_MAX || bytes > LIMEFILE_BYTES_MAX - offset)
        return -EFBIG;
    limefs_take(&writer->lock);
    int err = limefs_writer_catch_up(writer);
    if (!err)
        err = limefs_writer_check(writer);
    if (!err)
        err = limefs_writer_flush_store(writer);
    if (!err)
        err = allocate(target, mode, offset, bytes);
    limefs_leave(&writer->lock);
    return err;
}
