/* edit_header.c - change the types and message flags of records in place */
#include "edit_io.h"
#include "header_bytes.h"

#include <string.h>

static int write_type(struct limefile_source *source, uint64_t header_offset,
                      const struct limefile_header *header)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int err = limefile_header_encode(header, raw);
    if (!err)
        err = limefile_write_full(source, raw + AT_TYPE, LIMEFILE_TYPE_BYTES,
                                  header_offset + AT_TYPE);
    return err ? err : limefile_sync(source);
}

static int init_type(struct limefile_header *header, const char *type, size_t type_len)
{
    if (type_len == 0)
        return LIMEFILE_E_TYPE;
    return limefile_header_init(header, type, type_len, 0, false, false);
}

int limefile_set_type(struct limefile_source *source, uint64_t header_offset, const char *type,
                      size_t type_len)
{
    struct limefile_header header, old;
    int err = init_type(&header, type, type_len);
    if (!err)
        err = limefile_edit_read_header(source, header_offset, &old);
    return err ? err : write_type(source, header_offset, &header);
}

int limefile_editor_set_type(struct limefile_editor *editor, const char *type, size_t type_len)
{
    struct limefile_header header;
    if (editor->count == 0)
        return LIMEFILE_E_NO_RECORD;
    int err = init_type(&header, type, type_len);
    if (!err)
        err = write_type(editor->source, editor->last.header_offset, &header);
    if (err)
        return err;
    editor->last.type_len = header.type_len;
    memcpy(editor->last.type, header.type, header.type_len + 1u);
    return 0;
}

int limefile_set_boundary(struct limefile_source *source, uint64_t header_before,
                          uint64_t header_after, bool boundary)
{
    unsigned char word[LIMEFILE_WORD];
    int err = limefile_edit_read_start(source, header_after, word);
    if (!err)
        err = limefile_set_flags(source, header_before, boundary ? 0 : FLAG_ME,
                                 boundary ? FLAG_ME : 0);
    if (!err)
        err = limefile_set_flags(source, header_after, boundary ? 0 : FLAG_MB,
                                 boundary ? FLAG_MB : 0);
    return err ? err : limefile_sync(source);
}
