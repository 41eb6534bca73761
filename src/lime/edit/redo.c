/* redo.c - replace a record's data in place: a crash leaves all old data or all new data
 *
 * The new data are written behind the last record, after 8 zero bytes (a hole in the file),
 * where a reader looks for a header and finds none. Behind the new data and their padding, a
 * trailer ends the file: a magic word, the offset of the data to replace, and the new length.
 *
 * The mark of the last record tells recovery what to do after a crash. MARK_RESIZING: the bytes
 * behind the last record are not committed; cut them. MARK_REPLACING: the new data are valid;
 * copy them into the record again. After the copy, the mark becomes MARK_RESIZING before the
 * new data are cut: the cut may zero some of them before the new size is on the disk, and
 * recovery must not copy such zeros. */
#include "redo.h"
#include "header_bytes.h"
#include "edit_io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRAILER = 24 /* bytes */, CHUNK_BYTES = 1024 * 1024 };

static const unsigned char trailer_magic[LIMEFILE_WORD] = "limeredo";

static uint64_t padded_length(uint64_t bytes)
{
    return bytes + limefile_padding(bytes);
}

static int copy_new_data(struct limefile_source *source, const struct limefile_redo *redo)
{
    int err = 0;
    char *chunk = redo->bytes ? malloc(CHUNK_BYTES) : NULL;
    if (redo->bytes && !chunk)
        return -ENOMEM;
    for (uint64_t done = 0; !err && done < redo->bytes;) {
        uint64_t left = redo->bytes - done;
        size_t n = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
        err = limefile_read_exact(source, chunk, n, redo->offset + done);
        if (!err)
            err = limefile_write_full(source, chunk, n, redo->target + done);
        done += n;
    }
    free(chunk);
    return err;
}

/* Writes the last record's padding and its length, `bytes`. If the record becomes shorter, old
 * data follow the padding; a zero word overwrites their start, which may look like a header. */
static int write_last_end(struct limefile_source *source, uint64_t last, uint64_t bytes)
{
    static const unsigned char zeros[LIMEFILE_ALIGN + LIMEFILE_WORD];
    unsigned char word[LIMEFILE_WORD];
    put_be64(word, bytes);
    int err = limefile_write_full(source, zeros, limefile_padding(bytes) + LIMEFILE_WORD,
                                  last + LIMEFILE_HEADER_BYTES + bytes);
    return err ? err : limefile_write_full(source, word, sizeof word, last + AT_BYTES);
}

/* Sets the mark of the last record, whose header is at `last`, and syncs the file. */
static int set_mark_and_sync(struct limefile_source *source, uint64_t last, int mark)
{
    int err = limefile_set_mark(source, last, mark);
    return err ? err : limefile_sync(source);
}

/* Cuts the file after the padding of the record whose header is at `last`. Syncs the file. */
static int cut_after(struct limefile_source *source, uint64_t last)
{
    struct limefile_header header;
    uint64_t data_end, end;
    int err = limefile_edit_read_header(source, last, &header);
    if (!err)
        err = limefile_record_end(last, header.bytes, &data_end, &end);
    if (!err)
        err = limefile_set_size(source, end);
    return err ? err : limefile_sync(source);
}

int limefile_redo_apply(struct limefile_source *source, uint64_t last,
                        const struct limefile_redo *redo)
{
    int err = copy_new_data(source, redo);
    if (!err && redo->target == last + LIMEFILE_HEADER_BYTES)
        err = write_last_end(source, last, redo->bytes);
    if (!err)
        err = limefile_sync(source);
    if (!err)
        err = set_mark_and_sync(source, last, MARK_RESIZING);
    if (!err)
        err = cut_after(source, last);
    /* Needs no sync: if a crash restores the mark, recovery finds no bytes to cut. */
    return err ? err : limefile_set_mark(source, last, 0);
}

/* Returns true if a record's data begin at redo->target and can get the length redo->bytes, and
 * redo->offset is not less than the offset that limefile_redo_begin() would choose now. It is
 * greater than this if an interrupted copy has already made the last record shorter. */
static bool is_valid_redo(struct limefile_source *source, uint64_t last,
                          const struct limefile_redo *redo)
{
    struct limefile_header header;
    uint64_t data_end, end, length;
    if (limefile_edit_read_header(source, last, &header) != 0)
        return false;
    length = header.bytes;
    if (redo->target == last + LIMEFILE_HEADER_BYTES) {
        length = redo->bytes > length ? redo->bytes : length;
    } else if (redo->target < LIMEFILE_HEADER_BYTES || redo->target > last ||
               redo->bytes > last - redo->target ||
               limefile_edit_read_header(source, redo->target - LIMEFILE_HEADER_BYTES,
                                         &header) != 0 ||
               header.bytes != redo->bytes) {
        return false;
    }
    return limefile_record_end(last, length, &data_end, &end) == 0 &&
           redo->offset >= end + LIMEFILE_WORD;
}

int limefile_redo_find(struct limefile_source *source, uint64_t last, uint64_t size,
                       struct limefile_redo *out)
{
    unsigned char raw[TRAILER];
    if (size < last + LIMEFILE_HEADER_BYTES + LIMEFILE_WORD + TRAILER)
        return 0;
    int err = limefile_read_exact(source, raw, sizeof raw, size - TRAILER);
    if (err)
        return err;
    *out = (struct limefile_redo){
        .target = get_be64(raw + LIMEFILE_WORD),
        .bytes = get_be64(raw + 2 * LIMEFILE_WORD),
        .is_committed = true,
    };
    if (memcmp(raw, trailer_magic, sizeof trailer_magic) != 0 || out->bytes > size ||
        padded_length(out->bytes) > size - TRAILER)
        return 0;
    out->offset = size - TRAILER - padded_length(out->bytes);
    return is_valid_redo(source, last, out);
}

int limefile_redo_begin(struct limefile_editor *editor, const struct limefile_record *record,
                        uint64_t bytes, struct limefile_redo *redo)
{
    const struct limefile_last_record *last = &editor->last;
    bool is_last = record->data_offset == last->data_offset;
    uint64_t data_end, end, file_end;
    *redo = (struct limefile_redo){.target = record->data_offset, .bytes = bytes};
    if (editor->count == 0 || !last->committed || editor->uncertain ||
        (!is_last && bytes != record->bytes))
        return LIMEFILE_E_STATE;
    int err = limefile_record_end(last->header_offset,
                                  is_last && bytes > last->bytes ? bytes : last->bytes,
                                  &data_end, &end);
    if (!err && bytes > LIMEFILE_BYTES_MAX - LIMEFILE_WORD - TRAILER)
        err = LIMEFILE_E_LENGTH;
    if (!err)
        err = limefile_record_end(end, bytes + LIMEFILE_WORD + TRAILER, &data_end, &file_end);
    if (err)
        return err;
    redo->offset = end + LIMEFILE_WORD;
    return limefile_growth_begin(editor);
}

/* Writes the padding of the new data and the trailer, ends the file after it, and syncs. */
static int write_trailer(struct limefile_source *source, const struct limefile_redo *redo)
{
    unsigned char raw[LIMEFILE_ALIGN + TRAILER] = {0};
    unsigned padding = limefile_padding(redo->bytes);
    unsigned char *trailer = raw + padding;
    memcpy(trailer, trailer_magic, sizeof trailer_magic);
    put_be64(trailer + LIMEFILE_WORD, redo->target);
    put_be64(trailer + 2 * LIMEFILE_WORD, redo->bytes);
    int err = limefile_write_full(source, raw, padding + TRAILER, redo->offset + redo->bytes);
    if (!err)
        err = limefile_set_size(source, redo->offset + padded_length(redo->bytes) + TRAILER);
    return err ? err : limefile_sync(source);
}

int limefile_redo_commit(struct limefile_editor *editor, struct limefile_redo *redo)
{
    struct limefile_last_record *last = &editor->last;
    int err = write_trailer(editor->source, redo);
    if (err) {
        limefile_redo_abandon(editor);
        return err;
    }
    redo->is_committed = true;
    err = set_mark_and_sync(editor->source, last->header_offset, MARK_REPLACING);
    if (!err)
        err = limefile_redo_apply(editor->source, last->header_offset, redo);
    if (err)
        return err;
    editor->marked = editor->mark_synced = false;
    if (redo->target == last->data_offset)
        last->bytes = editor->claimed = redo->bytes;
    return 0;
}

/* Committing the old length cuts the bytes after the last record and clears its mark. */
int limefile_redo_abandon(struct limefile_editor *editor)
{
    return limefile_commit(editor, editor->last.bytes);
}
