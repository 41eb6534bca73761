/* record.c - append, remove and replace records, and change their headers and lengths */
#define _GNU_SOURCE
#include "caller.h"
#include "descriptor.h"
#include "job.h"
#include "store.h"
#include "writing.h"

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
    PATIENCE_S = 2, /* for the release of a record that was closed */
};

/* ---- the last record ---- */

int limefs_writer_commit(struct limefs_writer *writer)
{
    struct limefile_last last;
    int err = limefile_editor_last(writer->editor, &last);
    if (!err)
        err = limefs_writer_sync_store(writer); /* the data before their length */
    if (!err)
        err = limefs_last_error(&writer->last);
    if (!err)
        err = limefile_commit(writer->editor, writer->length);
    if (err)
        return err;
    limefs_last_commits(&writer->last);
    return limefs_writer_show_last(writer);
}

/* Removes the last record. After an error with *gone set, a power failure may bring it back. */
static int take_away(struct limefs_writer *writer, uint64_t ordinal, bool *gone)
{
    struct limefile_last last;
    int err = limefile_remove_last(writer->editor);
    *gone = !err || limefile_editor_last(writer->editor, &last) != 0 || last.ordinal != ordinal;
    if (*gone)
        limefs_writer_take_last(writer);
    return err;
}

static int show_without_last(struct limefs_writer *writer, const struct limefile_last *dropped)
{
    struct limefile_index *old, *index;
    bool gone;
    int err = take_away(writer, dropped->ordinal, &gone);
    if (!gone)
        return err;
    old = limefs_view_index(writer->fs, writer->view);
    int shown = limefile_index_without_last(old, &index);
    limefile_index_free(old);
    if (!shown)
        shown = limefs_view_renew(writer->fs, writer->view, dropped->ordinal);
    if (!shown)
        limefs_view_show(writer->fs, writer->view, index);
    return err ? err : shown;
}

static int drop_last(struct limefs_writer *writer)
{
    struct limefile_last last;
    struct limefs_change change;
    int err = limefile_editor_last(writer->editor, &last);
    if (err)
        return err;
    limefs_job_change(writer->fs, writer->view, &change, last.header_offset, UINT64_MAX, true);
    err = show_without_last(writer, &last);
    limefs_job_changed(writer->fs, writer->view, &change);
    return err;
}

int limefs_writer_give_up_last(struct limefs_writer *writer, const struct limefile_last *last,
                               bool forced)
{
    char path[PATH_MAX];
    const char *label = limefs_writer_label(writer, path, sizeof path);
    struct limefs_change change;
    int err = 0, failed = limefs_last_error(&writer->last);
    bool grows = limefs_last_is_growing(&writer->last);
    if (!last->committed && !failed && !forced)
        err = limefs_writer_commit(writer);
    else if (!last->committed) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) was not finished%s%s: it is taken away",
                   label, (unsigned long long)last->ordinal, last->type, failed ? ", " : "",
                   failed ? limefile_strerror(failed) : "");
        err = drop_last(writer);
    } else if (grows && (failed || forced)) {
        limefs_log(LOG_WARNING, "%s: record %llu (%s) keeps its old length of %llu bytes",
                   label, (unsigned long long)last->ordinal, last->type,
                   (unsigned long long)last->bytes);
        limefs_job_change(writer->fs, writer->view, &change, last->data_offset, UINT64_MAX,
                          true);
        err = limefile_commit(writer->editor, last->bytes);
        writer->length = last->bytes;
        limefs_job_changed(writer->fs, writer->view, &change);
        limefs_view_renew(writer->fs, writer->view, last->ordinal);
    } else if (grows)
        err = limefs_writer_commit(writer);
    if (!err)
        limefs_last_settles(&writer->last);
    else
        limefs_log(LOG_ERR, "%s: record %llu: close: %s", label,
                   (unsigned long long)last->ordinal, limefile_strerror(err));
    return err;
}

/* Each user of a target is also a user of the writer, and holds the snapshot. */
int limefs_target_attach(struct limefs_writer *writer, uint64_t ordinal,
                         struct limefs_target **out)
{
    struct limefs_target *target = limefs_writer_target(writer, ordinal);
    if (!target && !(target = calloc(1, sizeof *target)))
        return -ENOMEM;
    if (target->users++ == 0) {
        target->writer = writer;
        target->ordinal = ordinal;
        target->fd = -1;
        target->noted_mtime = LIMEFS_NO_MTIME;
        target->next = writer->targets;
        writer->targets = target;
    }
    writer->users++; /* not the first: the caller is a user */
    limefs_view_hold(writer->fs, writer->view);
    *out = target;
    return 0;
}

/* ---- wait for a release ---- */

static bool is_settled(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefile_last last;
    (void)ordinal;
    if (limefile_editor_last(writer->editor, &last) != 0)
        return true;
    return last.committed && !limefs_last_is_growing(&writer->last);
}

/* Returns true if the last record is settled, and not an empty one that will be filled. */
static bool is_complete(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefile_last last;
    bool empty = limefile_editor_last(writer->editor, &last) == 0 && writer->length == 0;
    return is_settled(writer, ordinal) &&
           !(empty && limefs_writer_target(writer, last.ordinal));
}

static bool is_closed(const struct limefs_writer *writer, uint64_t ordinal)
{
    return !limefs_writer_target(writer, ordinal);
}

/* Waits for the release of a file, which comes soon after its close. A single thread cannot
 * wait: it must receive the release. */
static bool wait_until(struct limefs_writer *writer, uint64_t ordinal,
                       bool (*holds)(const struct limefs_writer *, uint64_t))
{
    struct timespec until = limefs_clock_time(limefs_seconds() + PATIENCE_S);
    for (bool late = writer->fs->threads < 2; !holds(writer, ordinal) && !late;) {
        limefs_lock(&writer->parting);
        limefs_leave(&writer->lock);
        late = !limefs_wait_until(&writer->parted, &writer->parting, &until);
        limefs_unlock(&writer->parting);
        limefs_take(&writer->lock);
    }
    return holds(writer, ordinal);
}

/* Waits a short time until the last record is finished. Otherwise returns -EBUSY, or why it
 * can be neither finished nor removed, after a line in the log. Releases the lock in the
 * meantime. */
static int finish_last(struct limefs_writer *writer, const char *action,
                       bool (*holds)(const struct limefs_writer *, uint64_t))
{
    char path[PATH_MAX];
    struct limefile_last last;
    int err = 0;
    if (!is_settled(writer, 0) && limefile_editor_last(writer->editor, &last) == 0 &&
        !limefs_writer_target(writer, last.ordinal))
        err = limefs_writer_give_up_last(writer, &last, false);
    if (err && !is_settled(writer, 0))
        return err;
    if (wait_until(writer, 0, holds))
        return 0;
    limefs_log(LOG_ERR, "%s: %s: another record is being appended; wait until it is closed",
               limefs_writer_label(writer, path, sizeof path), action);
    return -EBUSY;
}

int limefs_writer_make_ready(struct limefs_writer *writer)
{
    struct limefile_last last;
    int err = 0;
    if (limefile_editor_last(writer->editor, &last) == 0 && last.committed &&
        limefs_last_is_growing(&writer->last) && !limefs_last_error(&writer->last)) {
        err = limefs_writer_flush_store(writer);
        if (!err)
            err = limefs_writer_commit(writer); /* it may continue to grow */
    }
    return err ? err : finish_last(writer, "write the container anew", is_settled);
}

/* ---- append ---- */

/* Gets the type that a new file's name stands for. Returns 0, or -errno after a log line. */
static int type_of_name(struct limefs_writer *writer, const char *name, char *type,
                        size_t *type_len)
{
    char path[PATH_MAX], *end;
    const char *label = limefs_writer_label(writer, path, sizeof path), *plain = name;
    struct limefile_record first;
    uint64_t count = 0;
    struct limefile_index *index = limefs_view_index(writer->fs, writer->view);
    uint64_t next = limefile_index_count(index) + 1;
    int err = 0;
    if (name[0] >= '0' && name[0] <= '9') {
        uint64_t ordinal = strtoull(name, &end, 10);
        if (*end == '-') {
            plain = end + 1;
            if (ordinal != next) {
                limefs_log(LOG_ERR, "%s: create %s: the next record is number %03llu", label,
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
        limefs_log(LOG_ERR, "%s: create %s: %llu records are of this type; %03llu-%s adds one",
                   label, name, (unsigned long long)count, (unsigned long long)next, name);
        err = -EEXIST;
    }
    limefile_index_free(index);
    return err;
}

/* Warns of a type that is not printable ASCII, once, when the record gets it. */
static void judge_type(const struct limefs_writer *writer, uint64_t ordinal, const char *type,
                       size_t len)
{
    char path[PATH_MAX], shown[LIMEFILE_NAME_MAX + 1];
    if (limefile_type_printable(type, len) == len)
        return;
    limefile_name_encode(type, len, shown, sizeof shown);
    limefs_log(LOG_WARNING,
               "%s: record %llu: control or non-ASCII bytes in its type (%s), for lime check "
               "a deviation",
               limefs_writer_label(writer, path, sizeof path), (unsigned long long)ordinal,
               shown);
}

static int append_record(struct limefs_writer *writer, const char *name)
{
    char type[LIMEFILE_TYPE_BYTES + 1];
    size_t type_len;
    struct limefile_last last;
    struct limefs_change change;
    uint64_t end = 0;
    bool gone;
    int err = finish_last(writer, "create", is_complete);
    if (!err)
        err = type_of_name(writer, name, type, &type_len);
    if (err)
        return err;
    if (limefile_editor_last(writer->editor, &last) == 0)
        end = last.data_offset + last.bytes;
    limefs_job_change(writer->fs, writer->view, &change, end, UINT64_MAX, true);
    err = limefile_append_begin(writer->editor, type, type_len);
    limefs_job_changed(writer->fs, writer->view, &change);
    if (err)
        return err == LIMEFILE_E_TYPE ? -EINVAL : err;
    writer->length = 0;
    limefs_last_settles(&writer->last); /* forget errors of the record before */
    limefs_last_grows(&writer->last);
    limefile_editor_last(writer->editor, &last);
    err = limefs_writer_show_last(writer);
    if (err)
        take_away(writer, last.ordinal, &gone);
    else
        judge_type(writer, last.ordinal, type, type_len);
    return err;
}

int limefs_record_append(struct limefs *fs, struct limefs_view *view, const char *name,
                         struct limefs_target **target)
{
    struct limefs_writer *writer;
    struct limefile_last last = {0};
    int err = limefs_writer_enter(fs, view, &writer);
    if (err)
        return err;
    err = append_record(writer, name);
    if (!err)
        err = limefile_editor_last(writer->editor, &last);
    if (!err) {
        err = limefs_target_attach(writer, last.ordinal, target);
        if (err)
            drop_last(writer);
    }
    limefs_writer_leave(writer);
    return err;
}

bool limefs_record_is_new(struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_writer *writer = view->writer;
    struct limefile_last last;
    if (!writer)
        return false;
    limefs_share(&writer->lock);
    bool fresh =
        writer->editor && limefs_writer_is_last(writer, ordinal, &last) && !last.committed;
    limefs_leave(&writer->lock);
    return fresh;
}

/* ---- remove ---- */

/* Waits for the file's release, without the lock. The release may discard an unfinished record,
 * and another record may get its number. */
static int remove_last(struct limefs_writer *writer, const struct limefile_last *last)
{
    struct limefs *fs = writer->fs;
    struct limefs_view *view = writer->view;
    char path[PATH_MAX];
    struct limefile_last now;
    uint64_t ordinal = last->ordinal, generation = limefs_view_generation(fs, view, ordinal);
    bool closed = wait_until(writer, ordinal, is_closed);
    if (!limefs_writer_is_last(writer, ordinal, &now) ||
        limefs_view_generation(fs, view, ordinal) != generation)
        return -ENOENT;
    if (closed)
        return drop_last(writer);
    limefs_log(LOG_ERR, "%s: remove: record %llu is being written to",
               limefs_writer_label(writer, path, sizeof path), (unsigned long long)ordinal);
    return -EBUSY;
}

static int remove_named(struct limefs_writer *writer, const char *name)
{
    char path[PATH_MAX];
    struct limefile_record record;
    struct limefile_last last;
    struct limefile_index *index = limefs_view_index(writer->fs, writer->view);
    int err = limefile_name_find(index, name, &record);
    limefile_index_free(index);
    if (err)
        return err;
    if (limefs_writer_is_last(writer, record.ordinal, &last))
        return remove_last(writer, &last);
    limefs_log(LOG_ERR, "%s: remove: record %llu is not the last one; lime rm removes any",
               limefs_writer_label(writer, path, sizeof path),
               (unsigned long long)record.ordinal);
    return -EPERM;
}

int limefs_record_remove(struct limefs *fs, struct limefs_view *view, const char *name)
{
    struct limefs_writer *writer;
    int err = limefs_writer_enter(fs, view, &writer);
    if (err)
        return err;
    err = remove_named(writer, name);
    limefs_writer_leave(writer);
    return err;
}

/* ---- change the type or the flags ---- */

/* Updates the snapshot after a change of headers. A scan may not find the last record. */
static int show_all(struct limefs_writer *writer)
{
    struct limefile_last last;
    int err = limefs_writer_reindex(writer);
    if (!err && limefile_editor_last(writer->editor, &last) == 0)
        err = limefs_writer_show_last(writer);
    return err;
}

static int set_type(struct limefs_writer *writer, const struct limefile_record *record,
                    const char *type, size_t len)
{
    struct limefile_last last;
    int err = limefs_writer_is_last(writer, record->ordinal, &last)
                  ? limefile_editor_set_type(writer->editor, type, len)
                  : limefile_set_type(&writer->file.source, record->header_offset, type, len);
    if (!err)
        judge_type(writer, record->ordinal, type, len);
    return err == LIMEFILE_E_TYPE ? -EINVAL : err;
}

/* Sets whether a message begins with the record of that ordinal. */
static int set_beginning(struct limefs_writer *writer, uint64_t ordinal, bool begins)
{
    struct limefile_last last;
    struct limefile_record before, record;
    struct limefile_index *index = limefs_view_index(writer->fs, writer->view);
    int err = 0;
    if (limefile_index_get(index, ordinal - 1, &before) != 0 ||
        limefile_index_get(index, ordinal, &record) != 0)
        err = begins ? 0 : -EINVAL; /* the container's ends are also ends of messages */
    else if (limefs_writer_is_last(writer, ordinal, &last))
        err = limefile_append_message(writer->editor, begins);
    else
        err = limefile_set_boundary(&writer->file.source, before.header_offset,
                                    record.header_offset, begins);
    limefile_index_free(index);
    return err;
}

static int set_header(struct limefs_writer *writer, uint64_t ordinal, const char *key,
                      const char *value, size_t len)
{
    struct limefile_record record;
    struct limefile_index *index;
    int err = limefs_writer_record(writer, ordinal, &record, &index);
    if (err)
        return err;
    bool flag = len == 1 && (value[0] == '0' || value[0] == '1');
    if (strcmp(key, "type") == 0)
        err = set_type(writer, &record, value, len);
    else if (strcmp(key, "mb") == 0)
        err = flag ? set_beginning(writer, ordinal, value[0] == '1') : -EINVAL;
    else if (strcmp(key, "me") == 0)
        err = flag ? set_beginning(writer, ordinal + 1, value[0] == '1') : -EINVAL;
    else
        err = -EPERM;
    limefile_index_free(index);
    return err ? err : show_all(writer);
}

int limefs_record_set(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                      const char *key, const char *value, size_t len)
{
    struct limefs_writer *writer;
    int err = limefs_writer_enter(fs, view, &writer);
    if (err)
        return err;
    err = set_header(writer, ordinal, key, value, len);
    limefs_writer_leave(writer);
    return err;
}

/* ---- replace inner records: data staged in a shadow file without a name ---- */

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

/* Creates a shadow file with the container's owner, as if the bytes were in the container
 * already; even if the caller may not create files in the directory. */
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
    struct limefile_copy copy = {
        .in = writer->shared.fd, .in_offset = record->data_offset, .out = fd, .left = kept};
    int err = limefile_copy(&copy);
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

static int resize_aside(struct limefs_target *target, uint64_t bytes)
{
    if (ftruncate(target->fd, (off_t)bytes) != 0)
        return -errno;
    limefs_collected_cut(&target->collected, target->bytes, bytes);
    target->bytes = bytes;
    return 0;
}

/* ---- put the staged data into the container ---- */

/* Makes the new file the container, which it is even after an error. */
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

static int rewrite_container(struct limefs_writer *writer, const struct limefile_record *record,
                             const struct limefile_piece *pieces, size_t count)
{
    const char *name;
    struct limefile_last last;
    struct limefs_change change;
    int fd = -1;
    if (limefile_editor_last(writer->editor, &last) == 0 &&
        (!last.committed || limefs_last_is_growing(&writer->last)))
        return -EBUSY;
    int err = limefs_writer_sync_store(writer); /* this host will read what ranks wrote */
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
    const struct limefile_rewrite to = {
        .dir_fd = folder,
        .name = name,
        .fd = writer->shared.fd,
        .index = index,
        .record = record,
        .chunks = pieces,
        .count = count,
    };
    err = limefile_rewrite(&to, &fd);
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
    err = rewrite_container(target->writer, &record, &piece, 1);
    limefile_index_free(index);
    if (err)
        return err;
    limefs_collected_puts(&target->collected);
    limefs_own_begin(); /* permission was checked when they were set */
    limefs_times_set(target->writer->fs, target->writer->view, target->times);
    limefs_own_end();
    forget_times(target);
    return 0;
}

/* ---- change the length ---- */

/* A failed write behind the end may have left bytes there: the kernel then requests the length
 * that the record has. */
static int resize_end(struct limefs_writer *writer, uint64_t bytes)
{
    struct limefile_last last;
    if (limefs_last_is_growing(&writer->last) && bytes == writer->length &&
        limefile_editor_last(writer->editor, &last) == 0 && last.committed &&
        last.bytes == bytes)
        return limefile_commit(writer->editor, bytes);
    return limefile_resize(writer->editor, writer->length, bytes);
}

static int resize_last(struct limefs_writer *writer, uint64_t bytes)
{
    struct limefile_last last;
    struct limefs_change change;
    int err = limefile_editor_last(writer->editor, &last);
    if (err)
        return err;
    limefs_job_change(writer->fs, writer->view, &change, last.data_offset, UINT64_MAX, true);
    err = resize_end(writer, bytes);
    uint64_t before = writer->length;
    if (!err)
        writer->length = bytes;
    limefs_job_changed(writer->fs, writer->view, &change);
    if (err) { /* the record may have the new length anyway */
        limefile_editor_last(writer->editor, &last);
        if (last.committed && !limefs_last_is_growing(&writer->last) &&
            writer->length != last.bytes) {
            writer->length = last.bytes;
            limefs_writer_show_last(writer);
        }
        return err;
    }
    limefs_sync_due(&writer->shared);
    limefile_editor_last(writer->editor, &last);
    /* If it was empty before, the kernel may have sent this after a failure: the gap remains.
     */
    limefs_last_cut(&writer->last, !last.committed || last.bytes != bytes,
                    bytes == 0 && before != 0);
    return limefs_writer_show_last(writer);
}

/* Changes the length of a record that is not open, at once. */
static int rewrite_closed(struct limefs_writer *writer, const struct limefile_record *record,
                          uint64_t bytes)
{
    uint64_t kept = record->bytes < bytes ? record->bytes : bytes;
    const struct limefile_piece pieces[] = {
        {.fd = writer->shared.fd, .offset = record->data_offset, .bytes = kept},
        {.fd = -1, .bytes = bytes - kept},
    };
    return rewrite_container(writer, record, pieces, 2);
}

int limefs_writer_resize(struct limefs_writer *writer, uint64_t ordinal, uint64_t bytes,
                         bool emptied)
{
    struct limefile_last last;
    struct limefile_record record;
    struct limefile_index *index;
    struct limefs_target *target = limefs_writer_target(writer, ordinal);
    if (target && limefs_collected_is(&target->collected))
        return resize_aside(target, bytes);
    if (limefs_writer_is_last(writer, ordinal, &last))
        return resize_last(writer, bytes);
    int err = limefs_writer_record(writer, ordinal, &record, &index);
    if (err)
        return err;
    if (bytes != record.bytes || (target && emptied))
        err = target ? limefs_aside_begin(target, &record, bytes, emptied)
                     : rewrite_closed(writer, &record, bytes);
    limefile_index_free(index);
    return err;
}

int limefs_record_resize(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                         uint64_t bytes, bool emptied)
{
    struct limefs_writer *writer;
    if (bytes > LIMEFILE_BYTES_MAX)
        return -EFBIG;
    int err = limefs_writer_enter(fs, view, &writer);
    if (err)
        return err;
    struct limefile_last last;
    bool closed = !limefs_writer_target(writer, ordinal);
    if (closed && !limefs_writer_is_last(writer, ordinal, &last))
        err = limefs_writer_make_ready(writer);
    if (!err)
        err = limefs_writer_resize(writer, ordinal, bytes, emptied);
    if (!err && closed && limefs_writer_is_last(writer, ordinal, &last) &&
        limefs_last_is_growing(&writer->last))
        err = limefs_writer_commit(writer); /* no close will follow */
    limefs_writer_leave(writer);
    return err == LIMEFILE_E_LENGTH ? -EFBIG : err;
}
