/* recordput.c - small records written into a container */
#define _GNU_SOURCE
#include "recordput.h"
#include "limeildg.h"
#include "limeguard.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int told(const struct edit *edit, const char *action, int err)
{
    if (err)
        message_code(edit->c.path, action, err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

/* ---- a new record ---- */

static int commit(struct edit *edit, const void *data, size_t n)
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

/* A signal cuts what has been written, but comes between no steps of a commit. */
static int append(struct edit *edit, const char *type, const void *data, size_t n)
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
    return commit(edit, data, n);
}

int record_append(struct edit *edit, const char *type, const void *data, size_t n)
{
    return told(edit, "append", append(edit, type, data, n));
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
