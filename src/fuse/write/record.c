/* record.c - records appended and removed */
#define _GNU_SOURCE
#include "job.h"
#include "writing.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>

enum {
    PATIENCE_S = 2, /* for a record that was closed, but whose release has not come yet */
};

/* ---- what there is ---- */

bool limefs_writer_is_last(const struct limefs_writer *writer, uint64_t ordinal,
                           struct limefile_last *last)
{
    return limefile_editor_last(writer->editor, last) == 0 && last->ordinal == ordinal;
}

int limefs_writer_record(struct limefs_writer *writer, uint64_t ordinal,
                         struct limefile_record *record, struct limefile_index **index)
{
    *index = limefs_view_index(writer->fs, writer->view);
    int err = limefile_index_get(*index, ordinal, record);
    if (err)
        limefile_index_free(*index);
    return err ? -ESTALE : 0;
}

int limefs_writer_check(struct limefs_writer *writer)
{
    struct stat st;
    char path[PATH_MAX];
    struct limefile_last last;
    if (limefs_container_is_behind(&writer->state))
        return -EIO;
    if (fstat(writer->shared.fd, &st) != 0)
        return -errno;
    bool gone = st.st_nlink == 0;
    bool cut = limefile_editor_last(writer->editor, &last) == 0 &&
               (uint64_t)st.st_size < last.data_offset + last.bytes;
    if (!gone && !cut)
        return limefs_writer_beyond(writer, (uint64_t)st.st_size) ? -ESTALE : 0;
    limefs_log(LOG_ERR, "%s: write: %s", limefs_writer_label(writer, path, sizeof path),
               gone ? "the container was removed, or replaced by another"
                    : "somebody else has made the container shorter");
    return -ESTALE;
}

void limefs_writer_take_last(struct limefs_writer *writer)
{
    struct limefile_last last;
    writer->length = limefile_editor_last(writer->editor, &last) == 0 ? last.bytes : 0;
    limefs_last_settles(&writer->last);
}

/* ---- the last record in the index ---- */

/* The view shows the last record as the editor has it. */
int limefs_writer_show_last(struct limefs_writer *writer)
{
    struct limefile_last last;
    struct limefile_record before, record;
    struct limefile_index *old = limefs_view_index(writer->fs, writer->view), *index;
    int err = limefile_editor_last(writer->editor, &last);
    if (!err) {
        bool first = limefile_index_get(old, last.ordinal - 1, &before) != 0;
        record = (struct limefile_record){
            .ordinal = last.ordinal,
            .message = first ? 1 : before.message + last.mb,
            .record = first || last.mb ? 1 : before.record + 1,
            .header_offset = last.header_offset,
            .data_offset = last.data_offset,
            .bytes = last.bytes,
            .padding = (uint8_t)limefile_padding(last.bytes),
            .mb = last.mb,
            .me = true,
            .type_len = last.type_len,
            .type = last.type,
        };
        err = limefile_index_with(old, &record, &index);
    }
    if (!err)
        limefs_view_show(writer->fs, writer->view, index);
    limefile_index_free(old);
    return err;
}

int limefs_writer_commit(struct limefs_writer *writer)
{
    struct limefile_last last;
    int err = limefile_editor_last(writer->editor, &last);
    if (!err)
        err = limefs_writer_sync_store(writer); /* before its length says that it is there */
    if (!err)
        err = limefs_last_error(&writer->last);
    if (!err)
        err = limefile_commit(writer->editor, writer->length);
    if (err)
        return err;
    limefs_last_commits(&writer->last);
    return limefs_writer_show_last(writer);
}

/* *gone: it is, though after an error perhaps not once the power fails. */
static int take_away(struct limefs_writer *writer, uint64_t ordinal, bool *gone)
{
    struct limefile_last last;
    int err = limefile_remove_last(writer->editor);
    *gone = !err || limefile_editor_last(writer->editor, &last) != 0 || last.ordinal != ordinal;
    if (*gone)
        limefs_writer_take_last(writer);
    return err;
}

static int drop_last(struct limefs_writer *writer, const struct limefile_last *dropped)
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

int limefs_writer_drop_last(struct limefs_writer *writer)
{
    struct limefile_last last;
    struct limefs_change change;
    int err = limefile_editor_last(writer->editor, &last);
    if (err)
        return err;
    limefs_job_change(writer->fs, writer->view, &change, last.header_offset, UINT64_MAX, true);
    err = drop_last(writer, &last);
    limefs_job_changed(writer->fs, writer->view, &change);
    return err;
}

/* ---- appended ---- */

/* The type that a new file's name stands for; -errno with a line in the log. */
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

/* Said once, when the record gets it. */
void limefs_record_judge_type(const struct limefs_writer *writer, uint64_t ordinal,
                              const char *type, size_t len)
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

/* ---- waiting for a release ---- */

static bool is_settled(const struct limefs_writer *writer, uint64_t ordinal)
{
    struct limefile_last last;
    (void)ordinal;
    if (limefile_editor_last(writer->editor, &last) != 0)
        return true;
    return last.committed && !limefs_last_is_growing(&writer->last);
}

/* Nor is it an empty one that somebody has open to fill it. */
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

/* A file that was closed is so for us when its release comes, soon after; one thread would keep
 * it out. */
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

/* The last record is finished, soon; else -EBUSY, or why it can be neither finished nor taken
 * away, and a line in the log. The lock is let go meanwhile. */
static int settle(struct limefs_writer *writer, const char *action,
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
            err = limefs_writer_commit(writer); /* it may go on growing afterwards */
    }
    return err ? err : settle(writer, "write the container anew", is_settled);
}

static int append(struct limefs_writer *writer, const char *name)
{
    char type[LIMEFILE_TYPE_BYTES + 1];
    size_t type_len;
    struct limefile_last last;
    struct limefs_change change;
    uint64_t end = 0;
    bool gone;
    int err = settle(writer, "create", is_complete);
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
    limefs_last_settles(&writer->last); /* what the record before has met is past */
    limefs_last_grows(&writer->last);
    limefile_editor_last(writer->editor, &last);
    err = limefs_writer_show_last(writer);
    if (err)
        take_away(writer, last.ordinal, &gone);
    else
        limefs_record_judge_type(writer, last.ordinal, type, type_len);
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
    err = append(writer, name);
    if (!err)
        err = limefile_editor_last(writer->editor, &last);
    if (!err) {
        err = limefs_target_attach(writer, last.ordinal, target);
        if (err)
            limefs_writer_drop_last(writer);
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

/* ---- removed ---- */

/* Others come in while a release is waited for; with it a record that was not finished goes,
 * and another one may have its number by then. */
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
        return limefs_writer_drop_last(writer);
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
