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

/* Room behind the data of the last record, filled: until the new data are there, it says what
 * it said before. */
static int lengthen(struct edit *edit, const struct limefile_record *record, size_t n,
                    char fill)
{
    size_t more = n - (size_t)record->bytes;
    char *data = malloc(more);
    if (!data)
        return -ENOMEM;
    memset(data, fill, more);
    int err = limefile_growth_begin(edit->editor);
    if (!err) {
        err = limefile_write_full(&edit->c.file.source, data, more,
                                  record->data_offset + record->bytes);
        int committed = limefile_commit(edit->editor, err ? record->bytes : n);
        err = err ? err : committed;
    }
    free(data);
    return err;
}

/* All in one write, so that no kill comes between. */
static int overwrite(struct edit *edit, const struct limefile_record *record, const void *data,
                     size_t n, char fill)
{
    struct limefile_source *source = &edit->c.file.source;
    size_t all = n > record->bytes ? n : (size_t)record->bytes;
    char *text = malloc(all + 1);
    if (!text)
        return -ENOMEM;
    memset(text, fill, all);
    memcpy(text, data, n);
    int err = limefile_write_full(source, text, all, record->data_offset);
    free(text);
    return err ? err : source->ops->sync(source);
}

static int put_in_place(struct edit *edit, const struct limefile_record *record,
                        const void *data, size_t n, char fill)
{
    bool last = edit_is_last(edit, record);
    int err = n > record->bytes ? lengthen(edit, record, n, fill) : 0;
    if (!err)
        err = overwrite(edit, record, data, n, fill);
    if (!err && last && n < record->bytes)
        err = limefile_commit(edit->editor, n);
    return err;
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
    return told(edit, "replace", put_in_place(edit, record, data, n, fill));
}
