/* edit.c - open, lock and change a container */
#define _GNU_SOURCE
#include "edit.h"
#include "limeguard.h"
#include "limeildg.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TRIES = 100, /* to lock a file that other processes replace */
};

static int lock(const char *path, int fd, bool test)
{
    int err = test ? limefile_lock_test(fd) : limefile_lock(fd);
    if (err == -EBUSY) {
        message(path, "lock: another process has this container open for writing, "
                      "a read-write mount perhaps; unmount it first");
        return TOOL_BAD;
    }
    if (err) /* some network file systems have no locks */
        message(path, "lock: warning: %s; make sure that nobody writes to it",
                limefile_strerror(err));
    return TOOL_GOOD;
}

static void note(void *context, const char *text)
{
    const struct edit *edit = context;
    message(edit->c.path, "edit: recover: %s", text);
}

/* The end is as a crash leaves it, or no container is there. */
static int refuse_tail(struct edit *edit)
{
    struct limefile_survey survey;
    struct container *c = &edit->c;
    container_fault_message(c);
    if (limefile_survey_take(&c->file.source, NULL, NULL, &survey) == 0 &&
        !survey.is_container) {
        message(c->path, "not a LIME container");
        return TOOL_UNUSABLE;
    }
    message(c->path, "edit: the container does not end with its last record, as after a crash; "
                     "nothing was changed, see 'lime repair -n'");
    return TOOL_BAD;
}

/* Does to deviations what limefs -o rw does: clears our own marks, leaves the harmless ones and
 * refuses message flags that contradict each other. */
static int recover(struct edit *edit)
{
    struct limefile_source *source = &edit->c.file.source;
    int err = limefile_recover(source, note, NULL, edit);
    if (err) {
        message(edit->c.path, "edit: %s; nothing was changed, see 'lime repair -n'",
                limefile_strerror(err));
        return TOOL_BAD;
    }
    limefile_index_free(edit->c.index);
    edit->c.index = NULL;
    err = limefile_index_build(source, &edit->c.index);
    return failed_status(edit->c.path, "index", err);
}

static int begin(struct edit *edit)
{
    int status = TOOL_GOOD;
    int err = limefile_index_build(&edit->c.file.source, &edit->c.index);
    if (err)
        return failed_status(edit->c.path, "index", err);
    if (limefile_index_fault(edit->c.index))
        status = refuse_tail(edit);
    else if (limefile_index_deviations(edit->c.index))
        status = recover(edit);
    if (status == TOOL_GOOD) {
        err = limefile_editor_new(&edit->c.file.source, edit->c.index, &edit->editor);
        if (err)
            message_code(edit->c.path, "edit", err);
        status = err ? TOOL_BAD : TOOL_GOOD;
    }
    if (status != TOOL_GOOD && edit->c.index)
        limefile_index_free(edit->c.index);
    return status;
}

/* The path leads to another file than the one that is open, or to none: a process that had the
 * lock before has replaced it. */
static bool is_replaced(const char *path, int fd)
{
    struct stat named, opened;
    return stat(path, &named) != 0 || fstat(fd, &opened) != 0 ||
           named.st_dev != opened.st_dev || named.st_ino != opened.st_ino;
}

int edit_open_locked(const char *path, bool test, int *fd)
{
    for (int i = 0; i < TRIES; i++) {
        *fd = open_with_message(path, test ? O_RDONLY : O_RDWR);
        if (*fd < 0)
            return TOOL_UNUSABLE;
        int status = lock(path, *fd, test);
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
    status = begin(edit);
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

int edit_replaced(const struct edit *edit, const struct limefile_redo *redo, int err)
{
    if (err)
        message(edit->c.path, "replace: %s; %s", limefile_strerror(err),
                redo->counts ? "'lime repair' completes it or takes it back"
                             : "the record has its old data");
    return err ? TOOL_BAD : TOOL_GOOD;
}

static void show_progress(void *context, uint64_t done, uint64_t size)
{
    struct progress *progress = context;
    progress->total = size;
    progress_to(progress, done);
}

/* What is to be done: limefile_rewrite(), or, if there is an insert, limefile_rewrite_insert().
 */
struct anew {
    const struct limefile_record *record;
    const struct limefile_piece *pieces;
    size_t count;
    const struct limefile_insert *insert;
};

static int write_anew(struct edit *edit, int folder, const char *name, const struct anew *what,
                      struct progress *progress, int *new_fd)
{
    if (what->insert)
        return limefile_rewrite_insert(folder, name, edit->c.fd, what->record, edit->c.index,
                                       what->insert, show_progress, progress, new_fd);
    return limefile_rewrite(folder, name, edit->c.fd, what->record, edit->c.index, what->pieces,
                            what->count, show_progress, progress, new_fd);
}

/* Links are followed, so that they stay what they are. */
static int rewrite_at(struct edit *edit, char *real, const struct anew *what)
{
    struct progress progress;
    char *name = strrchr(real, '/');
    int new_fd;
    *name++ = '\0';
    int folder = open(*real ? real : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    progress_begin(&progress, "rewrite", limefile_index_size(edit->c.index));
    int err = write_anew(edit, folder, name, what, &progress, &new_fd);
    progress_end(&progress);
    close(folder);
    if (new_fd >= 0)
        close(new_fd);
    return err;
}

static int rewrite(struct edit *edit, const struct anew *what)
{
    struct stat st;
    if (fstat(edit->c.fd, &st) == 0 && st.st_nlink > 1)
        message(edit->c.path,
                "rewrite: warning: other hard links to it keep the old container");
    char *real = realpath(edit->c.path, NULL);
    int err = real ? rewrite_at(edit, real, what) : -errno;
    free(real);
    return failed_status(edit->c.path, "write it anew in its folder", err);
}

int edit_rewrite(struct edit *edit, const struct limefile_record *record,
                 const struct limefile_piece *pieces, size_t count)
{
    return rewrite(edit, &(struct anew){.record = record, .pieces = pieces, .count = count});
}

int edit_insert(struct edit *edit, const struct limefile_record *after,
                const struct limefile_insert *insert)
{
    return rewrite(edit, &(struct anew){.record = after, .insert = insert});
}

static int told(const struct edit *edit, const char *action, int err)
{
    return failed_status(edit->c.path, action, err);
}

/* ---- a new record ---- */

static int commit_record(struct edit *edit, const void *data, size_t n)
{
    sigset_t before;
    struct limefile_last last;
    limefile_editor_last(edit->editor, &last);
    int err = limefile_write_full(&edit->c.file.source, data, n, last.data_offset);
    limefile_guard_hold(&before);
    if (!err)
        err = limefile_commit(edit->editor, n);
    if (err)
        limefile_remove_last(edit->editor);
    limefile_guard_lift();
    limefile_guard_release(&before);
    return err;
}

/* A signal cuts what has been written, but comes between no steps of a commit_record. */
static int append_record(struct edit *edit, const char *type, const void *data, size_t n)
{
    uint64_t end;
    int err = edit->c.file.source.ops->size(&edit->c.file.source, &end);
    if (err)
        return err;
    limefile_guard_end(edit->c.fd, end);
    err = limefile_append_begin(edit->editor, type, strlen(type));
    if (err) {
        limefile_guard_lift();
        return err;
    }
    return commit_record(edit, data, n);
}

int record_append(struct edit *edit, const char *type, const void *data, size_t n)
{
    return told(edit, "append_record", append_record(edit, type, data, n));
}

/* ---- other data in a record ---- */

/* The last record gets the right length, another one is filled up. A signal ends the process
 * when the record has its old data or the new ones. */
static int put_in_place(struct edit *edit, const struct limefile_record *record,
                        const void *data, size_t n, char fill)
{
    sigset_t before;
    struct limefile_redo redo;
    size_t all = edit_is_last(edit, record) ? n : (size_t)record->bytes;
    char *text = malloc(all + 1);
    if (!text)
        return told(edit, "replace", -ENOMEM);
    memset(text, fill, all);
    memcpy(text, data, n);
    limefile_guard_hold(&before);
    int err = limefile_redo_begin(edit->editor, record, all, &redo);
    if (!err)
        err = limefile_write_full(&edit->c.file.source, text, all, redo.at);
    if (err)
        limefile_redo_abandon(edit->editor);
    else
        err = limefile_redo_commit(edit->editor, &redo);
    limefile_guard_release(&before);
    free(text);
    return edit_replaced(edit, &redo, err);
}

static int put_anew(struct edit *edit, const struct limefile_record *record, const void *data,
                    size_t n)
{
    int fd = memfd_create("lime-record", MFD_CLOEXEC);
    if (fd < 0)
        return told(edit, "replace", -errno);
    int err = limefile_fd_write(fd, data, n, 0);
    int status = err ? told(edit, "replace", err)
                     : edit_rewrite(edit, record, &(struct limefile_piece){fd, 0, n}, 1);
    close(fd);
    return status;
}

int record_put(struct edit *edit, const struct limefile_record *record, const void *data,
               size_t n, char fill)
{
    bool fits = n <= record->bytes || edit_is_last(edit, record);
    if (!fits || record->bytes > LIMEFILE_XML_BYTES_MAX)
        return put_anew(edit, record, data, n);
    return put_in_place(edit, record, data, n, fill);
}
