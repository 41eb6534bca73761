/* edit.c - what the commands that change containers have in common */
#define _GNU_SOURCE
#include "edit.h"
#include "progress.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
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
    if (err)
        message_code(edit->c.path, "index", err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

static int begin(struct edit *edit)
{
    int status = TOOL_GOOD;
    int err = limefile_index_build(&edit->c.file.source, &edit->c.index);
    if (err) {
        message_code(edit->c.path, "index", err);
        return TOOL_BAD;
    }
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
    if (err)
        message_code(edit->c.path, "write it anew in its folder", err);
    return err ? TOOL_BAD : TOOL_GOOD;
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
