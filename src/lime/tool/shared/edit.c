/* edit.c - open, lock and change a container */
#define _GNU_SOURCE
#include "edit.h"
#include "limecleanup.h"
#include "limeildg.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOCK_TRIES = 100,              /* attempts to lock a file that other processes replace */
    STEP_BYTES = 16 * 1024 * 1024, /* bytes that are copied between two checks for a signal */
};

static int lock_for_edit(const char *path, int fd, bool test)
{
    int err = test ? limefile_lock_test(fd) : limefile_lock(fd);
    if (err == -EBUSY) {
        message(path, "lock: another process has this container open for writing, "
                      "a read-write mount perhaps; unmount it first");
        return TOOL_BAD;
    }
    if (err) /* some network file systems have no locks */
        message(path, "lock: warning: %s; make sure that no other program writes to it",
                limefile_strerror(err));
    return TOOL_GOOD;
}

static void print_recovery(void *context, const char *text)
{
    const struct edit *edit = context;
    message(edit->c.path, "edit: recover: %s", text);
}

/* Reports why the index has a fault: not a container, or a tail that a crash may have left. */
static int report_bad_tail(struct edit *edit)
{
    struct limefile_survey survey;
    struct container *c = &edit->c;
    if (container_report_format(c->path, c->source))
        return TOOL_UNUSABLE;
    container_report_fault(c);
    if (limefile_survey_scan(c->source, NULL, NULL, &survey) == 0 && !survey.is_container) {
        message(c->path, "not a LIME container");
        return TOOL_UNUSABLE;
    }
    message(c->path, "edit: data after the last record (after a crash?); see 'lime repair -n'");
    return TOOL_BAD;
}

/* Treats deviations as limefs -o rw does: completes or undoes an interrupted change, ignores
 * harmless deviations, refuses contradictory message flags. Then indexes the file again. */
static int recover_for_edit(struct edit *edit)
{
    struct limefile_source *source = edit->c.source;
    int err = limefile_recover(source, print_recovery, NULL, edit);
    if (err) {
        message(edit->c.path, "edit: %s; nothing was changed, see 'lime repair -n'",
                limefile_strerror(err));
        return TOOL_BAD;
    }
    limefile_index_free(edit->c.index);
    edit->c.index = NULL;
    err = limefile_index_build(source, &edit->c.index);
    return report_error(edit->c.path, "index", err);
}

/* Sets edit->c.index and edit->editor. Returns an exit status; frees the index if not GOOD. */
static int open_editor(struct edit *edit)
{
    int status = TOOL_GOOD;
    int err = limefile_index_build(edit->c.source, &edit->c.index);
    if (err)
        return report_error(edit->c.path, "index", err);
    if (limefile_index_fault(edit->c.index))
        status = report_bad_tail(edit);
    else if (limefile_index_deviations(edit->c.index))
        status = recover_for_edit(edit);
    if (status == TOOL_GOOD) {
        err = limefile_editor_new(edit->c.source, edit->c.index, &edit->editor);
        if (err)
            message_code(edit->c.path, "edit", err);
        status = err ? TOOL_BAD : TOOL_GOOD;
    }
    if (status != TOOL_GOOD && edit->c.index)
        limefile_index_free(edit->c.index);
    return status;
}

/* Returns true if `path` no longer leads to the open file: another process has replaced it. */
static bool is_replaced(const char *path, int fd)
{
    struct stat named, opened;
    return stat(path, &named) != 0 || fstat(fd, &opened) != 0 ||
           named.st_dev != opened.st_dev || named.st_ino != opened.st_ino;
}

int edit_open_locked(const char *path, bool test, int *fd)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        *fd = open_or_report(path, test ? O_RDONLY : O_RDWR);
        if (*fd < 0)
            return TOOL_UNUSABLE;
        int status = lock_for_edit(path, *fd, test);
        if (status == TOOL_GOOD && !is_replaced(path, *fd))
            return TOOL_GOOD;
        close(*fd);
        if (status != TOOL_GOOD)
            return status;
    }
    message(path, "lock: other processes keep replacing it; nothing was changed");
    return TOOL_BAD;
}

int edit_open(struct edit *edit, const char *path)
{
    *edit = (struct edit){.c.path = path};
    int status = edit_open_locked(path, false, &edit->c.fd);
    if (status != TOOL_GOOD)
        return status;
    limefile_fd_init(&edit->c.file, edit->c.fd);
    edit->c.source = &edit->c.file.source;
    status = open_editor(edit);
    if (status != TOOL_GOOD)
        close(edit->c.fd);
    return status;
}

void edit_close(struct edit *edit)
{
    limefile_editor_free(edit->editor);
    container_close(&edit->c);
}

bool edit_is_last(const struct edit *edit, const struct limefile_record *record)
{
    return record->ordinal == limefile_index_count(edit->c.index);
}

static void update_rewrite_bar(void *context, uint64_t done, uint64_t size)
{
    struct progress *progress = context;
    progress->total = size;
    progress_to(progress, done);
}

/* Writes the new container. real: the old container's path with symbolic links resolved, so
 * that the rename replaces the file and not a link to it. Modifies *real. */
static int rewrite_at(const struct limefile_rewrite *what, char *real)
{
    struct limefile_rewrite to = *what;
    struct progress progress;
    char *name = strrchr(real, '/');
    int new_fd;
    *name++ = '\0';
    to.dir_fd = open(*real ? real : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to.dir_fd < 0)
        return -errno;
    to.name = name;
    to.progress = update_rewrite_bar;
    to.context = &progress;
    progress_begin(&progress, "rewrite", limefile_index_size(to.index));
    int err = limefile_rewrite(&to, &new_fd);
    progress_end(&progress);
    close(to.dir_fd);
    if (new_fd >= 0)
        close(new_fd);
    return err;
}

/* Writes a new container: with `insert` after `record`, or with `piece` as the data of
 * `record`, or, if both are NULL, without `record`. Returns an exit status. */
static int rewrite_file(struct edit *edit, const struct limefile_record *record,
                        const struct limefile_chunk *piece,
                        const struct limefile_new_record *insert)
{
    struct stat st;
    const struct limefile_rewrite to = {
        .fd = edit->c.fd,
        .index = edit->c.index,
        .record = record,
        .insert = insert,
        .chunks = piece,
        .count = piece != NULL,
    };
    if (fstat(edit->c.fd, &st) == 0 && st.st_nlink > 1)
        message(edit->c.path, "rewrite: warning: other hard links keep the old content");
    char *real = realpath(edit->c.path, NULL);
    int err = real ? rewrite_at(&to, real) : -errno;
    free(real);
    return report_error(edit->c.path, "rewrite", err);
}

int edit_remove(struct edit *edit, const struct limefile_record *record)
{
    return rewrite_file(edit, record, NULL, NULL);
}

int edit_insert(struct edit *edit, const struct limefile_record *after,
                const struct limefile_new_record *insert)
{
    if (edit_is_last(edit, after))
        return edit_append_small(edit, insert->type, insert->data, insert->bytes);
    return rewrite_file(edit, after, NULL, insert);
}

/* If a signal ends the process, the signal handler cuts off the bytes written for the record.
 * During the commit, signals are delayed. */
bool edit_append(struct edit *edit, const char *type, bool begins_message, struct input *input,
                 struct progress *progress)
{
    sigset_t before;
    struct limefile_last_record last;
    uint64_t end, bytes;
    int err = edit->c.source->ops->size(edit->c.source, &end);
    if (!err) {
        limefile_cleanup_truncate(edit->c.fd, end);
        err = limefile_append_begin(edit->editor, type, strlen(type));
    }
    if (!err && begins_message)
        err = limefile_editor_set_mb(edit->editor, true);
    if (!err) {
        limefile_editor_last(edit->editor, &last);
        if (!input_copy(input, edit->c.fd, edit->c.path, last.data_offset, progress, &bytes))
            return false;
        limefile_cleanup_block(&before);
        err = limefile_commit(edit->editor, bytes);
        limefile_cleanup_clear();
        limefile_cleanup_unblock(&before);
    }
    if (err)
        message_code(edit->c.path, "append", err);
    return !err;
}

int edit_rollback(struct edit *edit)
{
    struct limefile_last_record last;
    int err = 0;
    while (!err && limefile_editor_last(edit->editor, &last) == 0 &&
           last.ordinal > limefile_index_count(edit->c.index))
        err = limefile_remove_last(edit->editor);
    limefile_cleanup_clear();
    report_error(edit->c.path, "undo append", err);
    return TOOL_BAD;
}

int edit_append_small(struct edit *edit, const char *type, const void *data, size_t n)
{
    struct input input;
    struct progress progress;
    if (!input_open_memory(&input, edit->c.path, data, n))
        return TOOL_BAD;
    progress_begin(&progress, "append", n);
    bool good = edit_append(edit, type, false, &input, &progress);
    progress_end(&progress);
    input_close(&input);
    return good ? TOOL_GOOD : edit_rollback(edit);
}

/* Writes the new data behind the last record. Returns false after a failure, or if a delayed
 * signal will end the process: the caller then undoes the change. */
static bool copy_steps(struct edit *edit, struct input *input, const struct limefile_redo *redo,
                       struct progress *progress)
{
    uint64_t step;
    for (uint64_t done = 0; done < redo->bytes; done += step) {
        uint64_t left = redo->bytes - done;
        step = left < STEP_BYTES ? left : STEP_BYTES;
        if (limefile_cleanup_pending() ||
            !input_copy_part(input, done, step, edit->c.fd, edit->c.path, redo->offset + done,
                             progress))
            return false;
    }
    return true;
}

static int replace_in_place(struct edit *edit, const struct limefile_record *record,
                            struct input *input, struct progress *progress)
{
    struct limefile_redo redo;
    int err = limefile_redo_begin(edit->editor, record, (uint64_t)input->st.st_size, &redo);
    if (!err && !copy_steps(edit, input, &redo, progress)) {
        report_error(edit->c.path, "undo replace", limefile_redo_abandon(edit->editor));
        return TOOL_BAD;
    }
    if (!err)
        err = limefile_redo_commit(edit->editor, &redo);
    if (err)
        message(edit->c.path, "replace: %s; %s", limefile_strerror(err),
                redo.is_committed ? "'lime repair' completes or undoes it"
                                  : "the record has its old data");
    return err ? TOOL_BAD : TOOL_GOOD;
}

int edit_replace(struct edit *edit, const struct limefile_record *record, struct input *input,
                 bool in_place)
{
    sigset_t before;
    struct progress progress;
    uint64_t bytes = (uint64_t)input->st.st_size;
    if (!in_place)
        return rewrite_file(edit, record, &(struct limefile_chunk){input->fd, 0, bytes}, NULL);
    progress_begin(&progress, "replace", bytes);
    limefile_cleanup_block(&before);
    int status = replace_in_place(edit, record, input, &progress);
    progress_end(&progress);
    limefile_cleanup_unblock(&before);
    return status;
}

int edit_replace_small(struct edit *edit, const struct limefile_record *record,
                       const void *data, size_t n, char fill)
{
    struct input input;
    bool is_last = edit_is_last(edit, record);
    bool in_place = (n <= record->bytes || is_last) && record->bytes <= LIMEFILE_XML_BYTES_MAX;
    size_t all = in_place && !is_last ? (size_t)record->bytes : n;
    char *text = malloc(all + 1);
    if (!text)
        return report_error(edit->c.path, "replace", -ENOMEM);
    memset(text, fill, all);
    memcpy(text, data, n);
    int status = TOOL_BAD;
    if (input_open_memory(&input, edit->c.path, text, all)) {
        status = edit_replace(edit, record, &input, in_place);
        input_close(&input);
    }
    free(text);
    return status;
}
