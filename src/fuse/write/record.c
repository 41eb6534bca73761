/* record.c - append, remove and replace records, and change their headers and lengths */
#define _GNU_SOURCE
#include "credentials.h"
#include "descriptor.h"
#include "job.h"
#include "write_buffers.h"
#include "writer_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

enum {
    CLOSE_TIMEOUT_S = 2, /* to wait for FUSE's RELEASE of a record that was closed */
};

/* ---- the last record ---- */

int limefs_writer_commit(struct limefs_writer *writer)
{
    struct limefile_last_record last;
    int err = limefile_editor_last(writer->editor, &last);
    if (!err)
        err = limefs_writer_sync_ranks(writer); /* data first, then their length */
    if (!err)
        err = limefs_last_error(&writer->last);
    if (!err)
        err = limefile_commit(writer->editor, writer->last_bytes);
    if (err)
        return err;
    limefs_last_commit(&writer->last);
    return limefs_writer_publish_last(writer);
}

/* Removes the last record. *gone: whether it is removed; if so, there can still be an error. */
static int remove_last_record(struct limefs_writer *writer, uint64_t ordinal, bool *gone)
{
    struct limefile_last_record last;
    int err = limefile_remove_last(writer->editor);
    *gone = !err || limefile_editor_last(writer->editor, &last) != 0 || last.ordinal != ordinal;
    if (*gone)
        limefs_writer_reset_last(writer);
    return err;
}

static int remove_and_publish(struct limefs_writer *writer,
                              const struct limefile_last_record *dropped)
{
    struct limefile_index *old, *index;
    bool gone;
    int err = remove_last_record(writer, dropped->ordinal, &gone);
    if (!gone)
        return err;
    old = limefs_snapshot_index(writer->fs, writer->snap);
    int result = limefile_index_without_last(old, &index);
    limefile_index_free(old);
    if (!result)
        result = limefs_snapshot_renew_record(writer->fs, writer->snap, dropped->ordinal);
    if (!result)
        limefs_snapshot_replace_index(writer->fs, writer->snap, index);
    return err ? err : result;
}

static int discard_last(struct limefs_writer *writer)
{
    struct limefile_last_record last;
    struct limefs_change change;
    int err = limefile_editor_last(writer->editor, &last);
    if (err)
        return err;
    limefs_change_begin(writer->fs, writer->snap, &change, last.header_offset, UINT64_MAX,
                        true);
    err = remove_and_publish(writer, &last);
    limefs_change_end(writer->fs, writer->snap, &change);
    return err;
}

int limefs_writer_finish_last(struct limefs_writer *writer,
                              const struct limefile_last_record *last, bool forced)
{
    char path[PATH_MAX];
    const char *label = limefs_writer_label(writer, path, sizeof path);
    struct limefs_change change;
    int err = 0, failed = limefs_last_error(&writer->last);
    bool grows = limefs_last_is_growing(&writer->last);
    if (!last->committed && !failed && !forced)
        err = limefs_writer_commit(writer);
    else if (!last->committed) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) was not finished%s%s: removing it", label,
                   (unsigned long long)last->ordinal, last->type, failed ? ", " : "",
                   failed ? limefile_strerror(failed) : "");
        err = discard_last(writer);
    } else if (grows && (failed || forced)) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) keeps its old length of %llu bytes",
                   label, (unsigned long long)last->ordinal, last->type,
                   (unsigned long long)last->bytes);
        limefs_change_begin(writer->fs, writer->snap, &change, last->data_offset, UINT64_MAX,
                            true);
        err = limefile_commit(writer->editor, last->bytes);
        writer->last_bytes = last->bytes;
        limefs_change_end(writer->fs, writer->snap, &change);
        limefs_snapshot_renew_record(writer->fs, writer->snap, last->ordinal);
    } else if (grows)
        err = limefs_writer_commit(writer);
    if (!err)
        limefs_last_reset(&writer->last);
    else
        limefs_log(LOG_ERR, "%s: record %llu: close: %s", label,
                   (unsigned long long)last->ordinal, limefile_strerror(err));
    return err;
}

/* Each user of a target is also a user of the writer, and holds the snapshot. */
int limefs_target_acquire(struct limefs_writer *writer, uint64_t ordinal,
                          struct limefs_target **out)
{
    struct limefs_target *target = limefs_writer_find_target(writer, ordinal);
    if (!target && !(target = calloc(1, sizeof *target)))
        return -ENOMEM;
    if (target->users++ == 0) {
        target->writer = writer;
        target->ordinal = ordinal;
        target->fd = -1;
        target->deferred_mtime = LIMEFS_NO_MTIME;
        target->next = writer->targets;
        writer->targets = target;
    }
    writer->users++; /* never the first one: the caller is a user */
    limefs_snapshot_add_pin(writer->fs, writer->snap);
    *out = target;
    return 0;
}

static bool is_last_committed(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefile_last_record last;
    (void)ordinal;
    if (limefile_editor_last(writer->editor, &last) != 0)
        return true;
    return last.committed && !limefs_last_is_growing(&writer->last);
}

/* Returns true if the last record is committed, unless it is empty and open for writing. */
static bool is_last_complete(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefile_last_record last;
    bool empty = limefile_editor_last(writer->editor, &last) == 0 && writer->last_bytes == 0;
    return is_last_committed(writer, ordinal) &&
           !(empty && limefs_writer_find_target(writer, last.ordinal));
}

static bool is_record_closed(const struct limefs_writer *writer, uint64_t ordinal)
{
    return !limefs_writer_find_target(writer, ordinal);
}

/* Waits a short time, unlocked, for is_done(), and returns its result: RELEASE comes soon after
 * a file's last close. A daemon's only thread must receive RELEASE, so it does not wait. */
static bool wait_for_close(struct limefs_writer *writer, uint64_t ordinal,
                           bool (*is_done)(const struct limefs_writer *, uint64_t))
{
    struct timespec until = limefs_clock_timespec(limefs_clock_seconds() + CLOSE_TIMEOUT_S);
    for (bool timed_out = writer->fs->threads < 2; !is_done(writer, ordinal) && !timed_out;) {
        limefs_lock(&writer->close_lock);
        limefs_rwlock_unlock(&writer->lock);
        timed_out =
            !limefs_cond_wait_until(&writer->target_closed, &writer->close_lock, &until);
        limefs_unlock(&writer->close_lock);
        limefs_lock_exclusive(&writer->lock);
    }
    return is_done(writer, ordinal);
}

/* Finishes the last record if it is closed, then waits a short time, unlocked, for is_done().
 * Returns 0, -EBUSY after a log line, or why the record cannot be finished. */
static int wait_until_finished(struct limefs_writer *writer, const char *action,
                               bool (*is_done)(const struct limefs_writer *, uint64_t))
{
    char path[PATH_MAX];
    struct limefile_last_record last;
    int err = 0;
    if (!is_last_committed(writer, 0) && limefile_editor_last(writer->editor, &last) == 0 &&
        !limefs_writer_find_target(writer, last.ordinal))
        err = limefs_writer_finish_last(writer, &last, false);
    if (err && !is_last_committed(writer, 0))
        return err;
    if (wait_for_close(writer, 0, is_done))
        return 0;
    limefs_log(LOG_ERR, "%s: %s: another record is being appended; wait until it is closed",
               limefs_writer_label(writer, path, sizeof path), action);
    return -EBUSY;
}

int limefs_writer_prepare_rewrite(struct limefs_writer *writer)
{
    struct limefile_last_record last;
    int err = 0;
    if (limefile_editor_last(writer->editor, &last) == 0 && last.committed &&
        limefs_last_is_growing(&writer->last) && !limefs_last_error(&writer->last)) {
        err = limefs_writer_flush_buffers(writer);
        if (!err)
            err = limefs_writer_commit(writer); /* the record may continue to grow */
    }
    return err ? err : wait_until_finished(writer, "rewrite the container", is_last_committed);
}

/* ---- append ---- */

/* Gets the type that a new file's name stands for. Returns 0, or -errno after a log line. */
static int parse_new_type(struct limefs_writer *writer, const char *name, char *type,
                          size_t *type_len)
{
    char path[PATH_MAX], *end;
    const char *label = limefs_writer_label(writer, path, sizeof path), *plain = name;
    struct limefile_record first;
    uint64_t count = 0;
    struct limefile_index *index = limefs_snapshot_index(writer->fs, writer->snap);
    uint64_t next = limefile_index_count(index) + 1;
    int err = 0;
    if (name[0] >= '0' && name[0] <= '9') {
        uint64_t ordinal = strtoull(name, &end, 10);
        if (*end == '-') {
            plain = end + 1;
            if (ordinal != next) {
                limefs_log(LOG_ERR, "%s: create %s: the next record has number %03llu", label,
                           name, (unsigned long long)next);
                err = -EPERM;
            }
        }
    }
    *type_len = limefile_name_decode(plain, strlen(plain), type, LIMEFILE_TYPE_BYTES + 1);
    if (!err && (*type_len == 0 || *type_len >= LIMEFILE_TYPE_BYTES)) {
        limefs_log(LOG_ERR, "%s: create %s: a record's type has 1 to 127 bytes", label, name);
        err = -EINVAL;
    }
    if (!err && plain == name &&
        limefile_index_by_type(index, type, *type_len, &first, &count) == 0) {
        limefs_log(LOG_ERR, "%s: create %s: %llu records have this type; add one as %03llu-%s",
                   label, name, (unsigned long long)count, (unsigned long long)next, name);
        err = -EEXIST;
    }
    limefile_index_free(index);
    return err;
}

/* Warns of a type that is not printable ASCII, once, when the record gets it. */
static void warn_unprintable_type(const struct limefs_writer *writer, uint64_t ordinal,
                                  const char *type, size_t len)
{
    char path[PATH_MAX], printable[LIMEFILE_NAME_MAX + 1];
    if (limefile_type_printable(type, len) == len)
        return;
    limefile_name_encode(type, len, printable, sizeof printable);
    limefs_log(LOG_WARNING,
               "%s: record %llu: its type (%s) contains control or non-ASCII bytes, which "
               "'lime check' reports",
               limefs_writer_label(writer, path, sizeof path), (unsigned long long)ordinal,
               printable);
}

static int append_record(struct limefs_writer *writer, const char *name)
{
    char type[LIMEFILE_TYPE_BYTES + 1];
    size_t type_len;
    struct limefile_last_record last;
    struct limefs_change change;
    uint64_t end = 0;
    bool gone;
    int err = wait_until_finished(writer, "create", is_last_complete);
    if (!err)
        err = parse_new_type(writer, name, type, &type_len);
    if (err)
        return err;
    if (limefile_editor_last(writer->editor, &last) == 0)
        end = last.data_offset + last.bytes;
    limefs_change_begin(writer->fs, writer->snap, &change, end, UINT64_MAX, true);
    err = limefile_append_begin(writer->editor, type, type_len);
    limefs_change_end(writer->fs, writer->snap, &change);
    if (err)
        return err == LIMEFILE_E_TYPE ? -EINVAL : err;
    writer->last_bytes = 0;
    limefs_last_reset(&writer->last); /* forget errors of the previous last record */
    limefs_last_begin_growth(&writer->last);
    limefile_editor_last(writer->editor, &last);
    err = limefs_writer_publish_last(writer);
    if (err)
        remove_last_record(writer, last.ordinal, &gone);
    else
        warn_unprintable_type(writer, last.ordinal, type, type_len);
    return err;
}

int limefs_record_append(struct limefs *fs, struct limefs_snapshot *snap, const char *name,
                         struct limefs_target **target)
{
    struct limefs_writer *writer;
    struct limefile_last_record last = {0};
    int err = limefs_writer_lock(fs, snap, &writer);
    if (err)
        return err;
    err = append_record(writer, name);
    if (!err)
        err = limefile_editor_last(writer->editor, &last);
    if (!err) {
        err = limefs_target_acquire(writer, last.ordinal, target);
        if (err)
            discard_last(writer);
    }
    limefs_writer_unlock(writer);
    return err;
}

bool limefs_record_is_new(struct limefs_snapshot *snap, uint64_t ordinal)
{
    struct limefs_writer *writer = snap->writer;
    struct limefile_last_record last;
    if (!writer)
        return false;
    limefs_lock_shared(&writer->lock);
    bool is_new =
        writer->editor && limefs_writer_is_last(writer, ordinal, &last) && !last.committed;
    limefs_rwlock_unlock(&writer->lock);
    return is_new;
}

/* ---- remove ---- */

/* Waits with the lock released until the record is closed, then removes it. Returns -ENOENT if
 * the close has discarded the record as unfinished, even if another record has its number. */
static int remove_when_closed(struct limefs_writer *writer,
                              const struct limefile_last_record *last)
{
    struct limefs *fs = writer->fs;
    struct limefs_snapshot *snap = writer->snap;
    char path[PATH_MAX];
    struct limefile_last_record now;
    uint64_t ordinal = last->ordinal,
             generation = limefs_snapshot_generation(fs, snap, ordinal);
    bool closed = wait_for_close(writer, ordinal, is_record_closed);
    if (!limefs_writer_is_last(writer, ordinal, &now) ||
        limefs_snapshot_generation(fs, snap, ordinal) != generation)
        return -ENOENT;
    if (closed)
        return discard_last(writer);
    limefs_log(LOG_ERR, "%s: remove: record %llu is open for writing",
               limefs_writer_label(writer, path, sizeof path), (unsigned long long)ordinal);
    return -EBUSY;
}

static int remove_by_name(struct limefs_writer *writer, const char *name)
{
    char path[PATH_MAX];
    struct limefile_record record;
    struct limefile_last_record last;
    struct limefile_index *index = limefs_snapshot_index(writer->fs, writer->snap);
    int err = limefile_name_find(index, name, &record);
    limefile_index_free(index);
    if (err)
        return err;
    if (limefs_writer_is_last(writer, record.ordinal, &last))
        return remove_when_closed(writer, &last);
    limefs_log(LOG_ERR, "%s: remove: record %llu is not the last one; use 'lime rm'",
               limefs_writer_label(writer, path, sizeof path),
               (unsigned long long)record.ordinal);
    return -EPERM;
}

int limefs_record_remove(struct limefs *fs, struct limefs_snapshot *snap, const char *name)
{
    struct limefs_writer *writer;
    int err = limefs_writer_lock(fs, snap, &writer);
    if (err)
        return err;
    err = remove_by_name(writer, name);
    limefs_writer_unlock(writer);
    return err;
}

/* ---- change the type or the flags ---- */

/* Publishes changed headers. An index of the file lacks an uncommitted last record: adds it. */
static int publish_all(struct limefs_writer *writer)
{
    struct limefile_last_record last;
    int err = limefs_writer_reindex(writer);
    if (!err && limefile_editor_last(writer->editor, &last) == 0)
        err = limefs_writer_publish_last(writer);
    return err;
}

static int set_record_type(struct limefs_writer *writer, const struct limefile_record *record,
                           const char *type, size_t len)
{
    struct limefile_last_record last;
    int err = limefs_writer_is_last(writer, record->ordinal, &last)
                  ? limefile_editor_set_type(writer->editor, type, len)
                  : limefile_set_type(&writer->file.source, record->header_offset, type, len);
    if (!err)
        warn_unprintable_type(writer, record->ordinal, type, len);
    return err == LIMEFILE_E_TYPE ? -EINVAL : err;
}

/* Sets whether a message begins with the record that has this ordinal. */
static int set_message_boundary(struct limefs_writer *writer, uint64_t ordinal, bool begins)
{
    struct limefile_last_record last;
    struct limefile_record before, record;
    struct limefile_index *index = limefs_snapshot_index(writer->fs, writer->snap);
    int err = 0;
    if (limefile_index_get(index, ordinal - 1, &before) != 0 ||
        limefile_index_get(index, ordinal, &record) != 0)
        err = begins ? 0 : -EINVAL; /* the first record begins a message, the last ends one */
    else if (limefs_writer_is_last(writer, ordinal, &last))
        err = limefile_editor_set_mb(writer->editor, begins);
    else
        err = limefile_set_boundary(&writer->file.source, before.header_offset,
                                    record.header_offset, begins);
    limefile_index_free(index);
    return err;
}

static int set_header_field(struct limefs_writer *writer, uint64_t ordinal, const char *key,
                            const char *value, size_t len)
{
    struct limefile_record record;
    struct limefile_index *index;
    int err = limefs_writer_get_record(writer, ordinal, &record, &index);
    if (err)
        return err;
    bool flag = len == 1 && (value[0] == '0' || value[0] == '1');
    if (strcmp(key, "type") == 0)
        err = set_record_type(writer, &record, value, len);
    else if (strcmp(key, "mb") == 0)
        err = flag ? set_message_boundary(writer, ordinal, value[0] == '1') : -EINVAL;
    else if (strcmp(key, "me") == 0)
        err = flag ? set_message_boundary(writer, ordinal + 1, value[0] == '1') : -EINVAL;
    else
        err = -EPERM;
    limefile_index_free(index);
    return err ? err : publish_all(writer);
}

int limefs_record_set_header(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                             const char *key, const char *value, size_t len)
{
    struct limefs_writer *writer;
    int err = limefs_writer_lock(fs, snap, &writer);
    if (err)
        return err;
    err = set_header_field(writer, ordinal, key, value, len);
    limefs_writer_unlock(writer);
    return err;
}

/* ---- replace inner records: data staged in a shadow file without a name ---- */

/* Creates a file without a name in the directory. Returns its descriptor or -errno. */
static int create_unlinked_file(int dir)
{
    char in_dir[LIMEFILE_FD_PATH_MAX], path[64];
    int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
        limefile_fd_path(dir, in_dir);
        snprintf(path, sizeof path, "%s/.limefs-XXXXXX", in_dir);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
    }
    return fd < 0 ? -errno : fd;
}

/* Creates a shadow file that belongs to the container's owner. The requesting user needs no
 * permission to create files in the directory. */
static int create_shadow_file(const struct limefs_writer *writer)
{
    struct stat st;
    const char *name;
    limefs_daemon_creds_enter();
    int dir = limefs_writer_directory(writer, &name);
    int fd = dir < 0 ? dir : create_unlinked_file(dir);
    if (fd >= 0 && geteuid() == 0 &&
        (fstat(writer->written.fd, &st) != 0 || fchown(fd, st.st_uid, st.st_gid) != 0)) {
        int err = -errno;
        close(fd);
        fd = err;
    }
    if (dir >= 0)
        close(dir);
    limefs_daemon_creds_leave();
    return fd;
}

static void clear_deferred_times(struct limefs_target *target)
{
    target->times[0].tv_nsec = target->times[1].tv_nsec = UTIME_OMIT;
}

int limefs_shadow_create(struct limefs_target *target, const struct limefile_record *record,
                         uint64_t bytes, bool emptied)
{
    struct limefs_writer *writer = target->writer;
    struct limefs_change change;
    uint64_t n = record->bytes < bytes ? record->bytes : bytes;
    int fd = create_shadow_file(writer);
    if (fd < 0)
        return fd;
    struct limefile_copy copy = {
        .in = writer->written.fd, .in_offset = record->data_offset, .out = fd, .left = n};
    int err = limefile_copy(&copy);
    if (!err && ftruncate(fd, (off_t)bytes) != 0)
        err = -errno;
    if (err) {
        close(fd);
        return err;
    }
    limefs_change_begin(writer->fs, writer->snap, &change, 0, 0, true);
    target->fd = fd;
    target->bytes = bytes;
    limefs_staging_begin(&target->staging, bytes, emptied);
    clear_deferred_times(target);
    limefs_change_end(writer->fs, writer->snap, &change);
    return 0;
}

static int resize_shadow(struct limefs_target *target, uint64_t bytes)
{
    if (ftruncate(target->fd, (off_t)bytes) != 0)
        return -errno;
    limefs_staging_truncate(&target->staging, target->bytes, bytes);
    target->bytes = bytes;
    return 0;
}

/* ---- put the staged data into the container ---- */

/* Makes writer and snapshot use the new file fd, which has the container's name. Closes fd. */
static int switch_to_file(struct limefs_writer *writer, int fd)
{
    int err = dup3(fd, writer->written.fd, O_CLOEXEC) < 0 ? -errno : 0;
    if (!err)
        err = limefs_snapshot_replace_file(writer->fs, writer->snap, fd);
    close(fd);
    if (err)
        return err;
    limefs_container_rewritten(&writer->state);
    return limefs_writer_refresh(writer);
}

/* Replaces the container by a new file, in which the record's data are these pieces. */
static int rewrite_container(struct limefs_writer *writer, const struct limefile_record *record,
                             const struct limefile_chunk *pieces, size_t count)
{
    const char *name;
    struct limefile_last_record last;
    struct limefs_change change;
    int fd = -1;
    if (limefile_editor_last(writer->editor, &last) == 0 &&
        (!last.committed || limefs_last_is_growing(&writer->last)))
        return -EBUSY;
    int err = limefs_writer_sync_ranks(writer); /* this host will read what ranks wrote */
    if (err)
        return err;
    limefs_daemon_creds_enter();
    int dir = limefs_writer_directory(writer, &name);
    limefs_daemon_creds_leave();
    if (dir < 0)
        return dir;
    limefs_change_begin(writer->fs, writer->snap, &change, 0, UINT64_MAX, true);
    limefs_snapshot_set_replacing(writer->fs, writer->snap, true);
    struct limefile_index *index = limefs_snapshot_index(writer->fs, writer->snap);
    limefs_daemon_creds_enter();
    const struct limefile_rewrite to = {
        .dir_fd = dir,
        .name = name,
        .fd = writer->written.fd,
        .index = index,
        .record = record,
        .chunks = pieces,
        .count = count,
    };
    err = limefile_rewrite(&to, &fd);
    limefs_daemon_creds_leave();
    limefile_index_free(index);
    close(dir);
    int moved = fd < 0 ? err : switch_to_file(writer, fd);
    if (fd >= 0)
        limefs_job_container_replaced(writer->fs, writer->snap);
    limefs_snapshot_set_replacing(writer->fs, writer->snap, false);
    limefs_change_end(writer->fs, writer->snap, &change);
    return moved ? moved : err;
}

int limefs_shadow_commit(struct limefs_target *target)
{
    struct limefile_record record;
    struct limefile_index *index;
    if (!limefs_staging_is_dirty(&target->staging))
        return 0;
    int err = limefs_staging_error(&target->staging);
    if (!err)
        err = limefs_writer_refresh(target->writer);
    if (!err)
        err = limefs_writer_get_record(target->writer, target->ordinal, &record, &index);
    if (err)
        return err;
    const struct limefile_chunk piece = {.fd = target->fd, .bytes = target->bytes};
    err = rewrite_container(target->writer, &record, &piece, 1);
    limefile_index_free(index);
    if (err)
        return err;
    limefs_staging_store(&target->staging);
    limefs_daemon_creds_enter(); /* permission was checked when a program set these times */
    limefs_set_times(target->writer->fs, target->writer->snap, target->times);
    limefs_daemon_creds_leave();
    clear_deferred_times(target);
    return 0;
}

/* ---- change the length ---- */

/* When the kernel restores the committed length after a failed write, the growth ends. */
static int resize_last_data(struct limefs_writer *writer, uint64_t bytes)
{
    struct limefile_last_record last;
    if (limefs_last_is_growing(&writer->last) && bytes == writer->last_bytes &&
        limefile_editor_last(writer->editor, &last) == 0 && last.committed &&
        last.bytes == bytes)
        return limefile_commit(writer->editor, bytes);
    return limefile_resize(writer->editor, writer->last_bytes, bytes);
}

static int resize_last_record(struct limefs_writer *writer, uint64_t bytes)
{
    struct limefile_last_record last;
    struct limefs_change change;
    int err = limefile_editor_last(writer->editor, &last);
    if (err)
        return err;
    limefs_change_begin(writer->fs, writer->snap, &change, last.data_offset, UINT64_MAX, true);
    err = resize_last_data(writer, bytes);
    uint64_t before = writer->last_bytes;
    if (!err)
        writer->last_bytes = bytes;
    limefs_change_end(writer->fs, writer->snap, &change);
    if (err) { /* the record may have the new length anyway */
        limefile_editor_last(writer->editor, &last);
        if (last.committed && !limefs_last_is_growing(&writer->last) &&
            writer->last_bytes != last.bytes) {
            writer->last_bytes = last.bytes;
            limefs_writer_publish_last(writer);
        }
        return err;
    }
    limefs_sync_mark_due(&writer->written);
    limefile_editor_last(writer->editor, &last);
    /* bytes 0 and before 0: the kernel may do so after a failed write, whose gap remains. */
    limefs_last_truncate(&writer->last, !last.committed || last.bytes != bytes,
                         bytes == 0 && before != 0);
    return limefs_writer_publish_last(writer);
}

static int resize_closed_record(struct limefs_writer *writer,
                                const struct limefile_record *record, uint64_t bytes)
{
    uint64_t n = record->bytes < bytes ? record->bytes : bytes;
    const struct limefile_chunk pieces[] = {
        {.fd = writer->written.fd, .offset = record->data_offset, .bytes = n},
        {.fd = -1, .bytes = bytes - n},
    };
    return rewrite_container(writer, record, pieces, 2);
}

int limefs_writer_resize(struct limefs_writer *writer, uint64_t ordinal, uint64_t bytes,
                         bool emptied)
{
    struct limefile_last_record last;
    struct limefile_record record;
    struct limefile_index *index;
    struct limefs_target *target = limefs_writer_find_target(writer, ordinal);
    if (target && limefs_is_staged(&target->staging))
        return resize_shadow(target, bytes);
    if (limefs_writer_is_last(writer, ordinal, &last))
        return resize_last_record(writer, bytes);
    int err = limefs_writer_get_record(writer, ordinal, &record, &index);
    if (err)
        return err;
    if (bytes != record.bytes || (target && emptied))
        err = target ? limefs_shadow_create(target, &record, bytes, emptied)
                     : resize_closed_record(writer, &record, bytes);
    limefile_index_free(index);
    return err;
}

int limefs_record_resize(struct limefs *fs, struct limefs_snapshot *snap, uint64_t ordinal,
                         uint64_t bytes, bool emptied)
{
    struct limefs_writer *writer;
    if (bytes > LIMEFILE_BYTES_MAX)
        return -EFBIG;
    int err = limefs_writer_lock(fs, snap, &writer);
    if (err)
        return err;
    struct limefile_last_record last;
    bool closed = !limefs_writer_find_target(writer, ordinal);
    if (closed && !limefs_writer_is_last(writer, ordinal, &last))
        err = limefs_writer_prepare_rewrite(writer);
    if (!err)
        err = limefs_writer_resize(writer, ordinal, bytes, emptied);
    if (!err && closed && limefs_writer_is_last(writer, ordinal, &last) &&
        limefs_last_is_growing(&writer->last))
        err = limefs_writer_commit(writer); /* no close will follow */
    limefs_writer_unlock(writer);
    return err == LIMEFILE_E_LENGTH ? -EFBIG : err;
}
