/* checksumput.c - lime checksum --add: the record that holds a sum */
#define _GNU_SOURCE
#include "checksumput.h"
#include "tempfile.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char type[] = "scidac-checksum";

static int told(const struct edit *edit, const char *action, int err)
{
    if (err)
        message_code(edit->c.path, action, err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

/* ---- a new record ---- */

static int commit(struct edit *edit, const char *xml, size_t n)
{
    sigset_t before;
    struct limefile_last last;
    limefile_editor_last(edit->editor, &last);
    int err = limefile_write_full(&edit->c.file.source, xml, n, last.data_offset);
    guard_hold(&before);
    if (!err)
        err = limefile_commit(edit->editor, n);
    if (err)
        limefile_remove_last(edit->editor);
    guard_lift();
    guard_release(&before);
    return err;
}

/* A signal cuts what has been written, but comes between no steps of a commit. */
static int append(struct edit *edit, const char *xml, size_t n)
{
    uint64_t end;
    int err = edit->c.file.source.ops->size(&edit->c.file.source, &end);
    if (err)
        return err;
    guard_end(edit->c.fd, end);
    err = limefile_append_begin(edit->editor, type, sizeof type - 1);
    if (err) {
        guard_lift();
        return err;
    }
    return commit(edit, xml, n);
}

/* A checksum belongs to the data before it in its message. */
static bool may_come_last(const struct edit *edit, const struct limefile_fields *fields,
                          const struct limefile_field *field)
{
    struct limefile_record last;
    return limefile_index_get(edit->c.index, limefile_index_count(edit->c.index), &last) == 0 &&
           last.message == field->record.message &&
           fields->field[fields->count - 1].record.ordinal == field->record.ordinal;
}

int checksum_add(struct edit *edit, const struct limefile_fields *fields,
                 const struct limefile_field *field, const struct limefile_checksum *sum)
{
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(sum, xml);
    if (may_come_last(edit, fields, field))
        return told(edit, "append", append(edit, xml, n));
    return edit_insert(edit, &field->record,
                       &(struct limefile_insert){type, sizeof type - 1, xml, n});
}

/* ---- other data in a record that is there ---- */

/* Should it be torn by a power failure, it is as wrong as it was. */
static int put_in_place(struct edit *edit, const struct limefile_record *record,
                        const char *xml, size_t n)
{
    struct limefile_source *source = &edit->c.file.source;
    char *data = malloc((size_t)record->bytes);
    if (!data)
        return -ENOMEM;
    memset(data, ' ', (size_t)record->bytes);
    memcpy(data, xml, n);
    int err = limefile_write_full(source, data, (size_t)record->bytes, record->data_offset);
    free(data);
    return err ? err : source->ops->sync(source);
}

static int put_longer(struct edit *edit, const struct limefile_record *record, const char *xml,
                      size_t n)
{
    struct limefile_fd file;
    int fd = memfd_create("lime-checksum", MFD_CLOEXEC);
    if (fd < 0)
        return told(edit, "replace", -errno);
    limefile_fd_init(&file, fd);
    int err = limefile_write_full(&file.source, xml, n, 0);
    int status = err ? told(edit, "replace", err)
                     : edit_rewrite(edit, record, &(struct limefile_piece){fd, 0, n}, 1);
    close(fd);
    return status;
}

int checksum_replace(struct edit *edit, uint64_t ordinal, const struct limefile_checksum *sum)
{
    struct limefile_record record;
    char xml[LIMEFILE_CHECKSUM_XML_MAX];
    size_t n = limefile_checksum_xml(sum, xml);
    int err = limefile_index_get(edit->c.index, ordinal, &record);
    if (err)
        return told(edit, "replace", err);
    if (record.bytes < n || record.bytes > LIMEFILE_XML_BYTES_MAX)
        return put_longer(edit, &record, xml, n);
    return told(edit, "replace", put_in_place(edit, &record, xml, n));
}
