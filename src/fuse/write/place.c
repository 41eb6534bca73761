/* place.c - where a record that is written to is, for readers */
#define _GNU_SOURCE
#include "store.h"
#include "writing.h"

#include <errno.h>
#include <stdlib.h>

int limefs_place_of(struct limefs_writer *writer, uint64_t ordinal, struct limefs_place *place)
{
    struct limefile_record record;
    struct limefile_index *index;
    struct limefile_last last;
    const struct limefs_target *target = limefs_writer_target(writer, ordinal);
    uint64_t shape = writer->shared.shape;
    if (target && limefs_collected_is(&target->collected)) {
        *place = (struct limefs_place){target->fd, 0, target->bytes, shape};
        return 0;
    }
    int err = limefs_writer_record(writer, ordinal, &record, &index);
    if (err)
        return err;
    *place = (struct limefs_place){writer->view->fd, record.data_offset, record.bytes, shape};
    if (writer->editor && limefs_writer_is_last(writer, ordinal, &last))
        place->bytes = writer->length;
    limefile_index_free(index);
    return 0;
}

void limefs_place_gather(struct limefs *fs, struct limefs_view *view, uint64_t at, size_t n)
{
    limefs_writer_tell(view->writer, limefs_store_flush(fs, &view->writer->shared, at, at + n));
}

int limefs_place_enter(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                       struct limefs_place *place)
{
    struct limefs_writer *writer = view->writer;
    (void)fs;
    limefs_share(&writer->lock);
    if (limefs_container_is_behind(&writer->state))
        limefs_writer_share_anew(writer);
    int err = 0;
    if (limefs_container_is_left(&writer->state))
        err = -ESTALE;
    else if (limefs_container_is_behind(&writer->state))
        err = -EIO;
    else
        err = limefs_place_of(writer, ordinal, place);
    if (err)
        limefs_leave(&writer->lock);
    return err;
}

void limefs_place_leave(struct limefs_view *view)
{
    limefs_leave(&view->writer->lock);
}

uint64_t limefs_record_bytes(struct limefs *fs, struct limefs_view *view,
                             const struct limefile_record *record)
{
    struct limefs_place place;
    uint64_t bytes = record->bytes;
    if (view->writer && limefs_place_enter(fs, view, record->ordinal, &place) == 0) {
        bytes = place.bytes;
        limefs_place_leave(view);
    }
    return bytes;
}
