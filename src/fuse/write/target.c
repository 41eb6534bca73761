/* target.c - records that are open for writing: write data, set times, sync and close */
#define _GNU_SOURCE
#include "credentials.h"
#include "job.h"
#include "write_buffers.h"
#include "writer_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

/* ---- the location of a record, for readers ---- */

static int locate_record(struct limefs_writer *writer, uint64_t ordinal,
                         struct limefs_location *place)
{
    struct limefile_record record;
    struct limefile_index *index;
    struct limefile_last_record last;
    const struct limefs_target *target = limefs_writer_find_target(writer, ordinal);
    uint64_t layout = writer->written.layout;
    if (target && limefs_is_staged(&target->staging)) {
        *place = (struct limefs_location){target->fd, 0, target->bytes, layout};
        return 0;
    }
    int err = limefs_writer_get_record(writer, ordinal, &record, &index);
    if (err)
        return err;
    *place =
        (struct limefs_location){writer->snap->fd, record.data_offset, record.bytes, layout};
    if (writer->editor && limefs_writer_is_last(writer, ordinal, &last))
        place->bytes = writer->last_bytes;
    limefile_index_free(index);
    return 0;
}

void limefs_location_flush(struct limefs *fs, struct limefs_snapshot *snap, uint64_t at,
                           size_t n)
{
    limefs_writer_report_error(
        snap->writer, limefs_write_buffers_flush(fs, &snap->writer->written, at, at + n));
}

int limefs_location_lock(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                         struct limefs_location *place)
{
    struct limefs_writer *writer = snap->writer;
    (void)fs;
    limefs_lock_shared(&writer->lock);
    if (limefs_container_is_unindexed(&writer->state))
        limefs_writer_relock_shared(writer);
    int err = 0;
    if (limefs_container_is_abandoned(&writer->state))
        err = -ESTALE;
    else if (limefs_container_is_unindexed(&writer->state))
        err = -EIO;
    else
        err = locate_record(writer, ordinal, place);
    if (err)
        limefs_rwlock_unlock(&writer->lock);
    return err;
}

void limefs_location_unlock(struct limefs_snapshot *snap)
{
    limefs_rwlock_unlock(&snap->writer->lock);
}

uint64_t limefs_record_bytes(struct limefs *fs, struct limefs_snapshot *snap,
                             const struct limefile_record *record)
{
    struct limefs_location place;
    uint64_t bytes = record->bytes;
    if (snap->writer && limefs_location_lock(fs, snap, record->ordinal, &place) == 0) {
        bytes = place.bytes;
        limefs_location_unlock(snap);
    }
    return bytes;
}

/* ---- times ---- */

#define SECOND INT64_C(1000000000)

/* Keeps the times until the staged data are put into the container: if they were set now,
 * programs that have the old container open would consider it changed. False: set them now. */
static bool defer_times(struct limefs_target *target, const struct timespec times[2])
{
    if (!target || !limefs_staging_is_dirty(&target->staging) ||
        limefs_staging_error(&target->staging))
        return false;
    for (int i = 0; i < 2; i++)
        if (times[i].tv_nsec != UTIME_OMIT)
            target->times[i] = times[i];
    return true;
}

/* Drops deferred mtimes: a newer mtime is being set. */
static void clear_deferred_mtimes(const struct limefs_writer *writer)
{
    for (struct limefs_target *target = writer->targets; target; target = target->next)
        target->deferred_mtime = LIMEFS_NO_MTIME;
}

bool limefs_target_defer_mtime(struct limefs_target *target, const struct timespec *time)
{
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)time->tv_sec, SECOND, &ns) ||
        __builtin_add_overflow(ns, (int64_t)time->tv_nsec, &ns) || ns < 0)
        return false;
    target->deferred_mtime = ns;
    return true;
}

/* If the record is growing, sets the mtime again at the close, whose commit changes it. */
static void defer_mtime_to_close(struct limefs_target *target, const struct timespec *mtime)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    bool sets = mtime->tv_nsec != UTIME_OMIT && mtime->tv_nsec != UTIME_NOW;
    if (sets && limefs_last_is_growing(&writer->last) &&
        limefs_writer_is_last(writer, target->ordinal, &last))
        limefs_target_defer_mtime(target, mtime);
}

int limefs_record_set_times(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                            const struct timespec times[2])
{
    struct limefs_writer *writer = snap->writer;
    if (!writer)
        return limefs_set_times(fs, snap, times);
    limefs_lock_exclusive(&writer->lock);
    if (times[1].tv_nsec != UTIME_OMIT)
        clear_deferred_mtimes(writer);
    struct limefs_target *target = limefs_writer_find_target(writer, ordinal);
    int err = defer_times(target, times) ? 0 : limefs_set_times(fs, snap, times);
    if (!err && target)
        defer_mtime_to_close(target, &times[1]);
    limefs_rwlock_unlock(&writer->lock);
    return err;
}

static void set_deferred_mtime(struct limefs_target *target)
{
    struct limefs_writer *writer = target->writer;
    int64_t ns = atomic_exchange(&target->deferred_mtime, LIMEFS_NO_MTIME);
    const struct timespec times[2] = {{0, UTIME_OMIT}, {ns / SECOND, ns % SECOND}};
    if (ns == LIMEFS_NO_MTIME)
        return;
    limefs_daemon_creds_enter(); /* a process with write permission need not be the owner */
    limefs_set_times(writer->fs, writer->snap, times);
    limefs_daemon_creds_leave();
}

/* ---- open and close ---- */

static int check_may_append(const struct limefs_writer *writer, uint64_t ordinal)
{
    char path[PATH_MAX];
    struct limefile_last_record last;
    const struct limefs_target *target = limefs_writer_find_target(writer, ordinal);
    if (limefs_writer_is_last(writer, ordinal, &last) ||
        (target && limefs_is_staged(&target->staging)))
        return 0;
    limefs_log(LOG_ERR,
               "%s: record %llu: append: only the last record can grow in place; write "
               "the whole record again (cp) or use 'lime replace'",
               limefs_writer_label(writer, path, sizeof path), (unsigned long long)ordinal);
    return -EPERM;
}

int limefs_target_open(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                       bool appends, struct limefs_target **out)
{
    struct limefs_writer *writer;
    int err = limefs_writer_get(fs, snap, &writer);
    if (err)
        return err;
    limefs_lock_exclusive(&writer->lock);
    err = limefs_writer_refresh(writer);
    if (!err)
        err = limefs_writer_check(writer);
    if (!err && appends)
        err = check_may_append(writer, ordinal);
    if (!err)
        err = limefs_target_acquire(writer, ordinal, out);
    limefs_rwlock_unlock(&writer->lock);
    limefs_writer_put(writer);
    return err;
}

uint64_t limefs_target_ordinal(const struct limefs_target *target)
{
    return target->ordinal;
}

static void free_target(struct limefs_writer *writer, struct limefs_target *target)
{
    struct limefs_target **at = &writer->targets;
    while (*at != target)
        at = &(*at)->next;
    *at = target->next;
    if (target->fd >= 0)
        close(target->fd);
    free(target);
}

/* Puts the staged data into the container; on an error (err) or if forced, discards them. */
static void end_staging(struct limefs_target *target, int err, bool forced)
{
    struct limefs_writer *writer = target->writer;
    char path[PATH_MAX];
    if (!limefs_staging_is_dirty(&target->staging))
        return;
    if (!err)
        err = limefs_staging_error(&target->staging);
    if (!err && !forced)
        err = limefs_shadow_commit(target);
    if (!err && !forced)
        return;
    limefs_log(err ? LOG_ERR : LOG_WARNING, "%s: record %llu keeps its old data: %s",
               limefs_writer_label(writer, path, sizeof path),
               (unsigned long long)target->ordinal,
               err ? limefile_strerror(err) : "the new data are incomplete");
    limefs_snapshot_renew_record(writer->fs, writer->snap, target->ordinal);
}

void limefs_target_close(struct limefs *fs, struct limefs_target *target, bool forced)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    limefs_lock_exclusive(&writer->lock);
    limefs_writer_flush_buffers(writer);
    int err = limefs_writer_refresh(writer);
    if (!err && limefs_staging_is_dirty(&target->staging) &&
        !limefs_staging_error(&target->staging) && !forced)
        err = limefs_writer_prepare_rewrite(writer); /* may release the lock for a time */
    if (--target->users == 0) {
        if (limefs_is_staged(&target->staging))
            end_staging(target, err, forced);
        else if (!err && limefs_writer_is_last(writer, target->ordinal, &last))
            limefs_writer_finish_last(writer, &last, forced);
        if (target->needs_new_id)
            limefs_snapshot_renew_record(fs, writer->snap, target->ordinal);
        if (!err)
            set_deferred_mtime(target);
        free_target(writer, target);
        limefs_change_note(fs, writer->snap);
    }
    limefs_rwlock_unlock(&writer->lock);
    limefs_lock(&writer->close_lock);
    pthread_cond_broadcast(&writer->target_closed);
    limefs_unlock(&writer->close_lock);
    limefs_writer_put(writer);
}

/* ---- sync ---- */

/* Returns true for a new record, or an emptied inner one, to which nothing was written yet. */
static bool has_no_data(const struct limefs_target *target)
{
    const struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    if (limefs_is_staged(&target->staging))
        return limefs_staging_is_empty(&target->staging);
    return writer->editor && limefs_writer_is_last(writer, target->ordinal, &last) &&
           !last.committed && writer->last_bytes == 0 && !limefs_last_error(&writer->last);
}

/* Commits the record, unless nothing was written and has_copy: a process may still write. */
static int finish_target(struct limefs_target *target, bool has_copy)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    if (has_copy && target->users == 1 && has_no_data(target))
        return 0;
    if (limefs_is_staged(&target->staging)) {
        int err = limefs_staging_error(&target->staging);
        if (!err && limefs_staging_is_dirty(&target->staging))
            err = limefs_writer_prepare_rewrite(writer);
        return err ? err : limefs_shadow_commit(target);
    }
    if (!limefs_writer_is_last(writer, target->ordinal, &last) ||
        !limefs_last_is_growing(&writer->last))
        return 0;
    return limefs_writer_commit(writer);
}

int limefs_target_sync(struct limefs *fs, struct limefs_target *target, bool closing)
{
    struct limefs_writer *writer = target->writer;
    int err = limefs_writer_lock_shared(writer);
    if (!err)
        err = limefs_writer_sync_ranks(writer);
    if (!err) { /* sync most of the data here, while other threads write */
        if (limefs_sync_begin(&writer->written))
            err = limefs_writer_fsync(writer);
        limefs_sync_end(&writer->written);
    }
    /* If the target has more users, /proc may show a descriptor of another user. */
    bool has_copy = closing && !err && target->users == 1 && has_no_data(target);
    limefs_rwlock_unlock(&writer->lock);
    has_copy = has_copy && limefs_record_has_writer(fs, writer->snap, target->ordinal);
    limefs_lock_exclusive(&writer->lock);
    int pending_error = atomic_exchange(&target->error, 0);
    if (!err)
        err = pending_error;
    if (!err)
        err = finish_target(target, has_copy);
    if (!err)
        set_deferred_mtime(target);
    limefs_change_note(writer->fs, writer->snap);
    limefs_rwlock_unlock(&writer->lock);
    return err;
}

static void raise_length(_Atomic uint64_t *length, uint64_t end)
{
    uint64_t now = *length;
    while (now < end && !atomic_compare_exchange_weak(length, &now, end))
        ;
}

/* ---- write to the three kinds of records (writer.h) ---- */

static int write_staged_data(struct limefs_target *target, const char *buf, size_t n,
                             uint64_t offset)
{
    int err = limefile_fd_write(target->fd, buf, n, offset);
    if (err)
        return err;
    raise_length(&target->bytes, offset + n);
    limefs_staging_write(&target->staging);
    return 0;
}

/* Writes through the job, or locally. */
static int write_bytes(struct limefs_target *target, const char *buf, size_t n, uint64_t at)
{
    struct limefs_writer *writer = target->writer;
    int stored =
        limefs_write_buffers_add(writer->fs, &writer->written, &target->stream, buf, n, at);
    if (stored)
        return stored < 0 ? stored : 0;
    return limefile_fd_stream(writer->written.fd, buf, n, at);
}

static int write_in_place(struct limefs_target *target, const char *buf, size_t n, uint64_t at)
{
    struct limefs_writer *writer = target->writer;
    struct limefs_change change;
    limefs_change_begin(writer->fs, writer->snap, &change, at, at + n, false);
    int err = write_bytes(target, buf, n, at);
    limefs_change_end(writer->fs, writer->snap, &change);
    return err;
}

static int write_last_record(struct limefs_target *target,
                             const struct limefile_last_record *last, const char *buf, size_t n,
                             uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    int err = write_in_place(target, buf, n, last->data_offset + offset);
    if (!err)
        raise_length(&writer->last_bytes, offset + n);
    return err;
}

/* A result: the record must grow before these bytes can be written. */
#define MUST_GROW 1

static int write_inner(struct limefs_target *target, const char *buf, size_t n, uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_record record;
    struct limefile_index *index;
    int err = limefs_writer_get_record(writer, target->ordinal, &record, &index);
    if (err)
        return err;
    err = offset + n > record.bytes
              ? MUST_GROW
              : write_in_place(target, buf, n, record.data_offset + offset);
    limefile_index_free(index);
    return err;
}

/* ---- growth ---- */

/* Stages an inner record if `end` is beyond its end. Call it with the lock held exclusively. */
static int stage_growth(struct limefs_target *target, uint64_t end)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_record record;
    struct limefile_index *index;
    int err = limefs_staging_error(&target->staging); /* further data would hide the gap */
    if (!err)
        err = limefs_writer_check(writer);
    if (!err)
        err = limefs_writer_sync_ranks(writer); /* this host will read what ranks wrote */
    if (!err)
        err = limefs_writer_get_record(writer, target->ordinal, &record, &index);
    if (err)
        return err;
    if (end > record.bytes)
        err = limefs_shadow_create(target, &record, record.bytes, false);
    limefile_index_free(index);
    if (err) {
        char path[PATH_MAX];
        limefs_log(LOG_ERR,
                   "%s: record %llu: cannot copy it to a file next to the container, which "
                   "is necessary to extend it: %s",
                   limefs_writer_label(writer, path, sizeof path),
                   (unsigned long long)target->ordinal, limefile_strerror(err));
        target->needs_new_id = true;
    }
    return err;
}

/* Prepares a record to grow: marks a committed last record in its header, or stages an inner
 * one. Releases the lock in between: the caller must check again whether it must grow. */
static int begin_growth(struct limefs_target *target, uint64_t end)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    int err = 0;
    limefs_rwlock_unlock(&writer->lock);
    limefs_lock_exclusive(&writer->lock);
    if (limefs_is_staged(&target->staging)) {
        /* Another thread has staged the record. */
    } else if (!limefs_writer_is_last(writer, target->ordinal, &last)) {
        err = stage_growth(target, end);
    } else if ((err = limefs_last_error(&writer->last)) != 0) {
        /* A write has failed in the meantime: further data would hide the gap. */
    } else if (!limefs_last_is_growing(&writer->last) && end > last.bytes) {
        err = limefile_growth_begin(writer->editor);
        if (!err)
            limefs_last_begin_growth(&writer->last);
    }
    limefs_rwlock_unlock(&writer->lock);
    limefs_lock_shared(&writer->lock);
    return err;
}

/* Returns MUST_GROW if the record must begin to grow. */
static int write_by_kind(struct limefs_target *target, const char *buf, size_t n,
                         uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    int err;
    if (limefs_is_staged(&target->staging))
        return write_staged_data(target, buf, n, offset);
    if (!limefs_writer_is_last(writer, target->ordinal, &last))
        err = write_inner(target, buf, n, offset);
    else if ((err = limefs_last_error(&writer->last)) != 0)
        return err; /* further data would hide the gap */
    else if (last.committed && !limefs_last_is_growing(&writer->last) &&
             offset + n > last.bytes)
        err = MUST_GROW;
    else
        err = write_last_record(target, &last, buf, n, offset);
    if (err != MUST_GROW)
        limefs_sync_mark_due(&writer->written);
    return err;
}

static int write_locked(struct limefs_target *target, const char *buf, size_t n,
                        uint64_t offset)
{
    int err;
    while ((err = write_by_kind(target, buf, n, offset)) == MUST_GROW) {
        err = begin_growth(target, offset + n); /* has released the lock, so start again */
        if (err)
            return err;
    }
    return err;
}

/* Notes a failed write: a record that is staged, is growing or was to grow now has a gap. */
static void mark_gap(struct limefs_target *target, uint64_t end, int err)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    struct limefile_record record;
    struct limefile_index *index;
    if (limefs_is_staged(&target->staging)) {
        limefs_staging_fail(&target->staging, err, false);
    } else if (writer->editor && limefs_writer_is_last(writer, target->ordinal, &last)) {
        if (end > last.bytes)
            limefs_last_fail(&writer->last, err, true);
    } else if (limefs_writer_get_record(writer, target->ordinal, &record, &index) == 0) {
        limefs_staging_fail(&target->staging, err, end > record.bytes);
        limefile_index_free(index);
    }
}

ssize_t limefs_target_write(struct limefs *fs, struct limefs_target *target, const char *buf,
                            size_t n, uint64_t offset)
{
    struct limefs_writer *writer = target->writer;
    if (offset > LIMEFILE_BYTES_MAX || n > LIMEFILE_BYTES_MAX - offset)
        return -EFBIG;
    int err = limefs_writer_lock_shared(writer);
    if (!err)
        err = write_locked(target, buf, n, offset);
    if (err)
        mark_gap(target, offset + n, err);
    limefs_rwlock_unlock(&writer->lock);
    /* A write overrides a deferred mtime. With direct_io, the kernel sends no newer mtime. */
    if (fs->options.direct_io)
        target->deferred_mtime = LIMEFS_NO_MTIME;
    if (err)
        target->error = err;
    else
        atomic_fetch_add_explicit(&fs->stats.local_written_bytes, n, memory_order_relaxed);
    return err ? err : (ssize_t)n;
}

/* ---- allocation ---- */

/* Releases the blocks behind the end that fallocate() allocated before it failed. */
static void free_blocks_behind_end(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && ftruncate(fd, st.st_size) != 0)
        limefs_log(LOG_WARNING, "fallocate failed, and its blocks could not be released: %s",
                   strerror(errno));
}

/* Allocates bytes [offset, limit) of the data that begin at offset `at` of fd. */
static int allocate_range(struct limefs_writer *writer, int fd, int mode, uint64_t at,
                          uint64_t offset, uint64_t limit)
{
    struct limefs_change change;
    int err = 0;
    limefs_sync_mark_due(&writer->written);
    limefs_change_begin(writer->fs, writer->snap, &change, at, at + limit, true);
    if (limit > offset && fallocate(fd, mode | FALLOC_FL_KEEP_SIZE, (off_t)(at + offset),
                                    (off_t)(limit - offset)) != 0) {
        err = -errno;
        free_blocks_behind_end(fd);
    }
    limefs_change_end(writer->fs, writer->snap, &change);
    return err;
}

static int allocate_in_record(struct limefs_target *target, int mode, uint64_t offset,
                              uint64_t bytes)
{
    struct limefs_writer *writer = target->writer;
    struct limefile_last_record last;
    struct limefs_location place;
    uint64_t end = offset + bytes;
    bool grows = !(mode & FALLOC_FL_KEEP_SIZE);
    int err = 0;
    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        return -EOPNOTSUPP;
    if (grows && !limefs_is_staged(&target->staging) &&
        !limefs_writer_is_last(writer, target->ordinal, &last))
        err = stage_growth(target, end);
    if (!err)
        err = locate_record(writer, target->ordinal, &place);
    if (err)
        return err;
    bool staged = limefs_is_staged(&target->staging);
    bool longer = end > place.bytes;
    /* Cut off what ranks allocated ahead. Doing it later would cut off the new blocks, too. */
    if (longer && grows && !staged && limefs_last_is_growing(&writer->last))
        err = limefile_trim(writer->editor, writer->last_bytes);
    if (err)
        return err;
    err = allocate_range(writer, staged ? place.fd : writer->written.fd, mode, place.at, offset,
                         longer && !grows ? place.bytes : end); /* not behind the record */
    if (err)
        return err; /* the length has not changed */
    if (staged)
        limefs_staging_write(&target->staging);
    return grows && longer ? limefs_writer_resize(writer, target->ordinal, end, false) : 0;
}

int limefs_target_allocate(struct limefs *fs, struct limefs_target *target, int mode,
                           uint64_t offset, uint64_t bytes)
{
    struct limefs_writer *writer = target->writer;
    (void)fs;
    if (offset > LIMEFILE_BYTES_MAX || bytes > LIMEFILE_BYTES_MAX - offset)
        return -EFBIG;
    limefs_lock_exclusive(&writer->lock);
    int err = limefs_writer_refresh(writer);
    if (!err)
        err = limefs_writer_check(writer);
    if (!err)
        err = limefs_writer_flush_buffers(writer);
    if (!err)
        err = allocate_in_record(target, mode, offset, bytes);
    limefs_rwlock_unlock(&writer->lock);
    return err;
}
