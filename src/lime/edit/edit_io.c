/* edit_io.c - the reads and writes that edits of a container consist of */
#include "edit_io.h"
#include "header_bytes.h"

#include <errno.h>

int limefile_sync(struct limefile_source *source)
{
    return source->ops->sync ? source->ops->sync(source) : -EROFS;
}

int limefile_set_size(struct limefile_source *source, uint64_t size)
{
    uint64_t now;
    int err = source->ops->size(source, &now);
    if (err || now == size)
        return err;
    return source->ops->truncate ? source->ops->truncate(source, size) : -EROFS;
}

int limefile_edit_read_start(struct limefile_source *source, uint64_t header,
                             unsigned char word[LIMEFILE_WORD])
{
    ssize_t got = limefile_read_full(source, word, LIMEFILE_WORD, header);
    if (got < 0)
        return (int)got;
    return got == LIMEFILE_WORD && get_be32(word) == LIMEFILE_MAGIC ? 0 : LIMEFILE_E_MAGIC;
}

int limefile_set_flags(struct limefile_source *source, uint64_t header, unsigned clear,
                       unsigned set)
{
    unsigned char word[LIMEFILE_WORD];
    int err = limefile_edit_read_start(source, header, word);
    if (err)
        return err;
    word[AT_FLAGS] = (unsigned char)((word[AT_FLAGS] & ~clear) | set);
    return limefile_write_full(source, word, sizeof word, header);
}

int limefile_set_mark(struct limefile_source *source, uint64_t header, int mark)
{
    unsigned char word[LIMEFILE_WORD];
    int err = limefile_edit_read_start(source, header, word);
    if (err)
        return err;
    word[AT_RESERVED] = (unsigned char)mark;
    return limefile_write_full(source, word, sizeof word, header);
}

int limefile_edit_read_header(struct limefile_source *source, uint64_t at,
                              struct limefile_header *out)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    ssize_t got = limefile_read_full(source, raw, sizeof raw, at);
    if (got < 0)
        return (int)got;
    return got == sizeof raw ? limefile_header_decode(raw, out) : LIMEFILE_E_MAGIC;
}

int limefile_encode_last(const struct limefile_editor *editor, uint64_t bytes,
                         unsigned char *raw)
{
    const struct limefile_last_record *last = &editor->last;
    struct limefile_header header;
    int err = limefile_header_init(&header, last->type, last->type_len, bytes, last->mb, true);
    return err ? err : limefile_header_encode(&header, raw);
}

int limefile_edit_write_start(struct limefile_editor *editor, bool mark)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int err = limefile_encode_last(editor, 0, raw);
    if (err)
        return err;
    raw[AT_RESERVED] = mark ? MARK_RESIZING : 0;
    editor->visible = true;
    editor->marked |= mark;
    editor->mark_synced = false;
    err = limefile_write_full(editor->source, raw, LIMEFILE_WORD, editor->last.header_offset);
    if (!err)
        editor->marked = mark;
    return err;
}

/* Returns true if the last record's header in the file states the length `bytes`. */
static bool reads_length(const struct limefile_editor *editor, uint64_t bytes)
{
    unsigned char word[LIMEFILE_WORD];
    return limefile_read_full(editor->source, word, sizeof word,
                              editor->last.header_offset + AT_BYTES) == LIMEFILE_WORD &&
           get_be64(word) == bytes;
}

int limefile_set_length(struct limefile_editor *editor, uint64_t bytes)
{
    unsigned char word[LIMEFILE_WORD];
    uint64_t claimed = editor->claimed;
    bool uncertain = editor->uncertain;
    put_be64(word, bytes);
    editor->uncertain = true;
    if (bytes > editor->claimed)
        editor->claimed = bytes;
    int err = limefile_write_full(editor->source, word, sizeof word,
                                  editor->last.header_offset + AT_BYTES);
    /* A failed write may have left the length unchanged, for example if the disk is full. */
    if (err && !uncertain && reads_length(editor, claimed)) {
        editor->claimed = claimed;
        editor->uncertain = false;
    } else if (!err) {
        err = limefile_sync(editor->source);
    }
    if (err)
        return err;
    editor->uncertain = false;
    editor->claimed = bytes;
    if (editor->last.committed)
        editor->last.bytes = bytes;
    return 0;
}

/* Sets the size before it writes the padding, which may need space that only a cut frees. */
int limefile_set_end(struct limefile_editor *editor, uint64_t bytes)
{
    static const unsigned char zeros[LIMEFILE_ALIGN];
    uint64_t data_end, next;
    int err = limefile_record_end(editor->last.header_offset, bytes, &data_end, &next);
    if (!err)
        err = limefile_set_size(editor->source, next);
    if (err)
        return err;
    return limefile_write_full(editor->source, zeros, (size_t)(next - data_end), data_end);
}
