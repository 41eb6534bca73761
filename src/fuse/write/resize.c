/* resize.c - records that get another length */
#define _GNU_SOURCE
#include "job.h"
#include "writing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A write behind the end that has failed may have left a part of it there: the kernel then asks
 * for the length that the record has. */
static int resize_end(struct limefs_writer *writer, uint64_t bytes)
{
    struct limefile_last last;
    if (limefs_last_is_growing(&writer->last) && bytes == writer->length &&
        limefile_editor_last(writer->editor, &last) == 0 && last.committed &&
        last.bytes == bytes)
        return limefile_commit(writer->editor, bytes);
    return limefile_resize(writer->editor, writer->length, bytes);
}

static int resize_last(struct limefs_writer *writer, uint64_t bytes)
{
    struct limefile_last last;
    struct limefs_change change;
    int err = limefile_editor_last(writer->editor, &last);
    if (err)
        return err;
    limefs_job_change(writer->fs, writer->view, &change, last.data_offset, UINT64_MAX, true);
    err = resize_end(writer, bytes);
    uint64_t before = writer->length;
    if (!err)
        writer->length = bytes;
    limefs_job_changed(writer->fs, writer->view, &change);
    if (err) { /* it may be done all the same, but for what comes behind it */
        limefile_editor_last(writer->editor, &last);
        if (last.committed && !limefs_last_is_growing(&writer->last) &&
            writer->length != last.bytes) {
            writer->length = last.bytes;
            limefs_writer_show_last(writer);
        }
        return err;
    }
    limefs_sync_due(&writer->shared);
    limefile_editor_last(writer->editor, &last);
    limefs_last_cut(&writer->last, !last.committed || last.bytes != bytes,
                    bytes == 0 && before != 0); /* else it may be the kernel, after a failure */
    return limefs_writer_show_last(writer);
}

/* Nobody has it open: at once. */
static int rewrite(struct limefs_writer *writer, const struct limefile_record *record,
                   uint64_t bytes)
{
    uint64_t kept = record->bytes < bytes ? record->bytes : bytes;
    const struct limefile_piece pieces[] = {
        {.fd = writer->shared.fd, .offset = record->data_offset, .bytes = kept},
        {.fd = -1, .bytes = bytes - kept},
    };
    return limefs_writer_rewrite(writer, record, pieces, 2);
}

int limefs_writer_resize(struct limefs_writer *writer, uint64_t ordinal, uint64_t bytes,
                         bool emptied)
{
    struct limefile_last last;
    struct limefile_record record;
    struct limefile_index *index;
    struct limefs_target *target = limefs_writer_target(writer, ordinal);
    if (target && limefs_collected_is(&target->collected))
        return limefs_aside_resize(target, bytes);
    if (limefs_writer_is_last(writer, ordinal, &last))
        return resize_last(writer, bytes);
    int err = limefs_writer_record(writer, ordinal, &record, &index);
    if (err)
        return err;
    if (bytes != record.bytes || (target && emptied))
        err = target ? limefs_aside_begin(target, &record, bytes, emptied)
                     : rewrite(writer, &record, bytes);
    limefile_index_free(index);
    return err;
}

int limefs_record_resize(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                         uint64_t bytes, bool emptied)
{
    struct limefs_writer *writer;
    if (bytes > LIMEFILE_BYTES_MAX)
        return -EFBIG;
    int err = limefs_writer_enter(fs, view, &writer);
    if (err)
        return err;
    struct limefile_last last;
    bool closed = !limefs_writer_target(writer, ordinal);
    if (closed && !limefs_writer_is_last(writer, ordinal, &last))
        err = limefs_writer_make_ready(writer);
    if (!err)
        err = limefs_writer_resize(writer, ordinal, bytes, emptied);
    if (!err && closed && limefs_writer_is_last(writer, ordinal, &last) &&
        limefs_last_is_growing(&writer->last))
        err = limefs_writer_commit(writer); /* nobody will close it */
    limefs_writer_leave(writer);
    return err == LIMEFILE_E_LENGTH ? -EFBIG : err;
}
