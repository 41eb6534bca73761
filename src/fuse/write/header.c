/* header.c - records that get another type, or other flags */
#define _GNU_SOURCE
#include "writing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After a change of headers: the last record may be one that no scan finds. */
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
        limefs_record_judge_type(writer, record->ordinal, type, len);
    return err == LIMEFILE_E_TYPE ? -EINVAL : err;
}

/* Whether a message begins with the record of that ordinal. */
static int set_beginning(struct limefs_writer *writer, uint64_t ordinal, bool begins)
{
    struct limefile_last last;
    struct limefile_record before, record;
    struct limefile_index *index = limefs_view_index(writer->fs, writer->view);
    int err = 0;
    if (limefile_index_get(index, ordinal - 1, &before) != 0 ||
        limefile_index_get(index, ordinal, &record) != 0)
        err = begins ? 0 : -EINVAL; /* the ends of the container are those of messages */
    else if (limefs_writer_is_last(writer, ordinal, &last))
        err = limefile_append_message(writer->editor, begins);
    else
        err = limefile_set_boundary(&writer->file.source, before.header_offset,
                                    record.header_offset, begins);
    limefile_index_free(index);
    return err;
}

static int set(struct limefs_writer *writer, uint64_t ordinal, const char *key,
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
    err = set(writer, ordinal, key, value, len);
    limefs_writer_leave(writer);
    return err;
}
