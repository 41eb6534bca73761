/* edit.c - append, resize and remove the last record of a container in place */
#include "array.h"
#include "header_bytes.h"
#include "cut.h"
#include "edit_io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the editor ---- */

static int push_header(struct limefile_editor *editor, uint64_t header)
{
    if (!limefile_reserve(&editor->headers, &editor->capacity, editor->count + 1,
                          sizeof header))
        return -ENOMEM;
    editor->headers[editor->count++] = header;
    return 0;
}

/* Fills editor->last from the header at offset `header`. That record must be complete. */
static int load_last(struct limefile_editor *editor, uint64_t ordinal, uint64_t header)
{
    struct limefile_header h;
    int err = limefile_edit_read_header(editor->source, header, &h);
    if (err)
        return err;
    editor->last = (struct limefile_last_record){
        .ordinal = ordinal,
        .header_offset = header,
        .data_offset = header + LIMEFILE_HEADER_BYTES,
        .bytes = h.bytes,
        .committed = true,
        .mb = h.mb,
        .type_len = h.type_len,
    };
    memcpy(editor->last.type, h.type, h.type_len + 1u);
    editor->claimed = h.bytes;
    editor->visible = true;
    editor->uncertain = editor->before_cleared = editor->mark_synced = false;
    editor->marked = h.reserved == MARK_RESIZING || h.reserved == MARK_REMOVING;
    return 0;
}

/* Reads all header offsets from the index. Writes the last record's padding if missing. */
static int load_headers(struct limefile_editor *editor, const struct limefile_index *index)
{
    struct limefile_record record;
    uint64_t size, count = limefile_index_count(index);
    int err = editor->source->ops->size(editor->source, &size);
    if (!err && (limefile_index_fault(index) || size != limefile_index_size(index)))
        err = LIMEFILE_E_STATE;
    for (uint64_t i = 1; !err && i <= count; i++) {
        err = limefile_index_get(index, i, &record);
        if (!err)
            err = push_header(editor, record.header_offset);
    }
    if (err || count == 0)
        return err;
    err = load_last(editor, count, record.header_offset);
    if (!err && editor->last.bytes != record.bytes)
        err = LIMEFILE_E_STATE;
    if (!err && size < record.data_offset + record.bytes + record.padding)
        err = limefile_set_end(editor, record.bytes);
    return err;
}

int limefile_editor_new(struct limefile_source *source, const struct limefile_index *index,
                        struct limefile_editor **out)
{
    struct limefile_editor *editor = calloc(1, sizeof *editor);
    if (!editor)
        return -ENOMEM;
    editor->source = source;
    int err = load_headers(editor, index);
    if (err) {
        limefile_editor_free(editor);
        return err;
    }
    *out = editor;
    return 0;
}

void limefile_editor_free(struct limefile_editor *editor)
{
    if (!editor)
        return;
    free(editor->headers);
    free(editor);
}

int limefile_editor_last(const struct limefile_editor *editor, struct limefile_last_record *out)
{
    if (editor->count == 0)
        return LIMEFILE_E_NO_RECORD;
    *out = editor->last;
    return 0;
}

int limefile_editor_end(const struct limefile_editor *editor, uint64_t *end)
{
    uint64_t data_end;
    *end = 0;
    if (editor->count == 0)
        return 0;
    if (!editor->last.committed || editor->uncertain || editor->marked)
        return LIMEFILE_E_STATE;
    return limefile_record_end(editor->last.header_offset, editor->last.bytes, &data_end, end);
}

/* ---- append ---- */

/* Finds the end of the last record. LIMEFILE_E_STATE if the file does not end there. */
static int find_end(const struct limefile_editor *editor, uint64_t *end)
{
    uint64_t data_end, size;
    *end = 0;
    int err = editor->source->ops->size(editor->source, &size);
    if (!err && editor->count)
        err = limefile_record_end(editor->last.header_offset, editor->claimed, &data_end, end);
    return err ? err : size == *end ? 0 : LIMEFILE_E_STATE;
}

/* Writes and syncs a header at `at`, with zeros instead of its first word. */
static int write_unfinished(struct limefile_editor *editor,
                            const struct limefile_header *header, uint64_t at)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int err = limefile_header_encode(header, raw);
    if (err)
        return err;
    memset(raw, 0, LIMEFILE_WORD);
    err = limefile_write_full(editor->source, raw, sizeof raw, at);
    /* Recovery recognises a tail by its header, which must be on the disk before the data. */
    if (!err)
        err = limefile_sync(editor->source);
    if (err)
        limefile_set_size(editor->source, at);
    return err;
}

int limefile_append_begin(struct limefile_editor *editor, const char *type, size_t type_len)
{
    struct limefile_header header;
    uint64_t at, data_end, next;
    if (editor->count && !editor->last.committed)
        return LIMEFILE_E_STATE;
    if (editor->count >= UINT32_MAX - 1)
        return LIMEFILE_E_RECORDS;
    if (type_len == 0)
        return LIMEFILE_E_TYPE;
    int err = limefile_header_init(&header, type, type_len, 0, false, false);
    if (!err && editor->count && (editor->uncertain || editor->marked))
        err = limefile_commit(editor, editor->last.bytes); /* repairs the last record */
    if (!err)
        err = find_end(editor, &at);
    if (!err)
        err = limefile_record_end(at, 0, &data_end, &next);
    if (!err)
        err = push_header(editor, at);
    if (err)
        return err;
    err = write_unfinished(editor, &header, at);
    if (err) {
        editor->count--;
        return err;
    }
    editor->last = (struct limefile_last_record){
        .ordinal = editor->count,
        .header_offset = at,
        .data_offset = at + LIMEFILE_HEADER_BYTES,
        .mb = editor->count == 1,
        .type_len = header.type_len,
    };
    memcpy(editor->last.type, header.type, header.type_len + 1u);
    editor->claimed = 0;
    editor->visible = editor->uncertain = editor->marked = editor->before_cleared = false;
    return 0;
}

int limefile_editor_set_mb(struct limefile_editor *editor, bool mb)
{
    int err = 0;
    if (editor->count == 0 || (editor->visible && !editor->last.committed))
        return LIMEFILE_E_STATE;
    if (editor->count == 1 && !mb)
        return LIMEFILE_E_ORDER;
    if (editor->visible && editor->last.mb != mb)
        err = limefile_set_boundary(editor->source, editor->headers[editor->count - 2],
                                    editor->last.header_offset, mb);
    if (!err)
        editor->last.mb = mb;
    return err;
}

/* ---- commit ---- */

/* Clears ME of the previous record (the one before the last) if the last record continues its
 * message. If the last record begins a message and an earlier call has cleared that ME, sets it
 * again. */
static int set_previous_me(struct limefile_editor *editor)
{
    uint64_t before = editor->count > 1 ? editor->headers[editor->count - 2] : 0;
    if (editor->count > 1 && !editor->last.mb) {
        editor->before_cleared = true;
        return limefile_set_flags(editor->source, before, FLAG_ME, 0);
    }
    return editor->before_cleared ? limefile_set_flags(editor->source, before, 0, FLAG_ME) : 0;
}

/* Writes all of the header except its first word. limefile_commit() writes that word later. */
static int commit_first(struct limefile_editor *editor, uint64_t bytes)
{
    unsigned char raw[LIMEFILE_HEADER_BYTES];
    int err = limefile_encode_last(editor, bytes, raw);
    if (!err)
        err = limefile_set_end(editor, bytes);
    if (!err)
        err =
            limefile_write_full(editor->source, raw + LIMEFILE_WORD, sizeof raw - LIMEFILE_WORD,
                                editor->last.header_offset + LIMEFILE_WORD);
    if (!err)
        err = set_previous_me(editor);
    if (!err)
        err = limefile_sync(editor->source);
    if (err)
        return err;
    editor->claimed = bytes;
    return 0;
}

/* Commits the length `claimed`, which the header already states. */
static int commit_same(struct limefile_editor *editor)
{
    int err = limefile_set_end(editor, editor->claimed);
    return err ? err : limefile_sync(editor->source);
}

/* Commits a greater length. The data are synced before the header states the length. */
static int commit_more(struct limefile_editor *editor, uint64_t bytes)
{
    int err = limefile_set_end(editor, bytes);
    if (!err)
        err = limefile_sync(editor->source);
    return err ? err : limefile_set_length(editor, bytes);
}

/* Finds the smallest file size that includes all data that the last header may state. */
static int find_floor(const struct limefile_editor *editor, uint64_t *floor)
{
    uint64_t data_end;
    *floor = editor->last.data_offset;
    if (!editor->visible)
        return 0;
    return limefile_record_end(editor->last.header_offset, editor->claimed, &data_end, floor);
}

static int truncate_to(struct limefile_editor *editor, uint64_t end)
{
    uint64_t size;
    int err = editor->source->ops->size(editor->source, &size);
    return err || size <= end ? err : limefile_set_size(editor->source, end);
}

/* Cuts the data after `bytes` bytes. Zeros, instead of cutting, those before find_floor(). */
static int cut_data(struct limefile_editor *editor, uint64_t bytes)
{
    static const unsigned char zeros[LIMEFILE_ALIGN];
    uint64_t floor, end = editor->last.data_offset + bytes;
    int err = find_floor(editor, &floor);
    if (!err)
        err = truncate_to(editor, end < floor ? floor : end);
    if (err || end >= floor)
        return err;
    return limefile_write_full(editor->source, zeros, (size_t)(floor - end), end);
}

/* Commits a smaller length. First marks the record, so that recovery cuts the bytes behind the
 * new end. Then cuts uncommitted bytes: the write of the length may need their space. */
static int commit_less(struct limefile_editor *editor, uint64_t bytes)
{
    uint64_t floor;
    int err = limefile_growth_begin(editor);
    if (!err)
        err = find_floor(editor, &floor);
    if (!err)
        err = truncate_to(editor, floor);
    if (!err)
        err = limefile_set_length(editor, bytes);
    return err ? err : commit_same(editor);
}

static int commit_length(struct limefile_editor *editor, uint64_t bytes)
{
    if (!editor->visible)
        return commit_first(editor, bytes);
    if (bytes < editor->claimed)
        return commit_less(editor, bytes);
    if (bytes > editor->claimed || editor->uncertain)
        return commit_more(editor, bytes);
    return commit_same(editor);
}

int limefile_commit(struct limefile_editor *editor, uint64_t bytes)
{
    uint64_t data_end, next;
    if (editor->count == 0)
        return LIMEFILE_E_NO_RECORD;
    int err = limefile_record_end(editor->last.header_offset, bytes, &data_end, &next);
    if (!err)
        err = commit_length(editor, bytes);
    if (err)
        return err;
    /* Clearing the mark needs no sync: if a crash restores it, recovery cuts no bytes. */
    bool first = !editor->last.committed;
    if (first || editor->marked)
        err = limefile_edit_write_start(editor, false);
    if (first && !err)
        err = limefile_sync(editor->source);
    if (first && !err) {
        editor->last.committed = true;
        editor->last.bytes = bytes;
    }
    return err;
}

/* ---- resize ---- */

int limefile_growth_begin(struct limefile_editor *editor)
{
    if (editor->count == 0)
        return LIMEFILE_E_NO_RECORD;
    if (!editor->visible || (editor->marked && editor->mark_synced))
        return 0;
    int err = limefile_edit_write_start(editor, true);
    if (!err)
        err = limefile_sync(editor->source);
    if (!err)
        editor->mark_synced = true;
    return err;
}

/* Cuts space that a writer has allocated behind the data, then appends zeros to the data. */
static int grow_data(struct limefile_editor *editor, uint64_t now, uint64_t bytes)
{
    uint64_t size, end = editor->last.data_offset + bytes;
    int err = limefile_growth_begin(editor);
    if (!err)
        err = cut_data(editor, now);
    if (!err)
        err = editor->source->ops->size(editor->source, &size);
    return err ? err : size < end ? limefile_set_size(editor->source, end) : 0;
}

int limefile_resize(struct limefile_editor *editor, uint64_t now, uint64_t bytes)
{
    uint64_t data_end, next;
    if (editor->count == 0)
        return LIMEFILE_E_NO_RECORD;
    int err = limefile_record_end(editor->last.header_offset, bytes, &data_end, &next);
    if (err || bytes == now)
        return err;
    if (editor->visible && (now < editor->claimed || bytes <= editor->claimed))
        err = limefile_commit(editor, bytes < now ? bytes : now);
    else if (bytes < now)
        err = cut_data(editor, bytes);
    return err || bytes <= now ? err : grow_data(editor, now, bytes);
}

int limefile_trim(struct limefile_editor *editor, uint64_t now)
{
    return editor->count == 0 ? LIMEFILE_E_NO_RECORD : cut_data(editor, now);
}

/* ---- remove ---- */

int limefile_remove_last(struct limefile_editor *editor)
{
    struct limefile_editor after = *editor;
    if (editor->count == 0)
        return LIMEFILE_E_NO_RECORD;
    uint64_t before = --after.count == 0 ? 0 : editor->headers[after.count - 1];
    struct limefile_cut cut = {
        .end = editor->last.header_offset,
        .has_previous = after.count > 0,
        .before = before,
        .set_me = !editor->last.mb && (editor->visible || editor->before_cleared),
        .visible = editor->visible,
    };
    int err = after.count == 0 ? 0 : load_last(&after, after.count, before);
    if (!err)
        err = limefile_cut(editor->source, &cut);
    if (cut.is_cut) {
        *editor = after;
        editor->marked |= cut.marked;
    }
    return err;
}
