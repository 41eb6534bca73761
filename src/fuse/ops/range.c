/* range.c - where a record's bytes are, for programs that read them by themselves */
#include "caller.h"
#include "faces.h"
#include "job.h"
#include "limerange.h"
#include "view.h"
#include "xattr.h"

#include <errno.h>
#include <unistd.h>

/* Bytes that are looked at on their way must come this way, and what nobody has stored lies
 * nowhere. */
static bool is_open_to_all(const struct limefs *fs, const struct limefs_view *view)
{
    return !fs->options.rw && fs->options.verify != LIMEFS_VERIFY_STREAM && !view->guise;
}

/* What a face's file has of the record as it is stored, all in one piece, and its own bytes
 * before; `range` is the record's. */
static bool stored_part(const struct limefile_face *files, uint64_t number,
                        struct limefile_range *range)
{
    struct limefile_face_piece piece;
    limefile_face_piece(files, number, 0, &piece);
    if (piece.what == LIMEFILE_FACE_OWN) {
        range->head = piece.bytes;
        limefile_face_piece(files, number, range->head, &piece);
    }
    if (piece.what != LIMEFILE_FACE_STORED || piece.at > range->bytes ||
        piece.bytes > range->bytes - piece.at)
        return false;
    range->offset += piece.at;
    range->bytes = piece.bytes;
    return true;
}

/* Of a pinned view, and a file of its face or NULL. One that was made so soon after the last
 * change that the next might not show in the times is no measure for others. */
static int encode(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                  const struct limefile_face *files, uint64_t number,
                  char text[LIMEFILE_RANGE_TEXT_MAX])
{
    struct limefile_record record;
    char path[LIMEFILE_RANGE_PATH_MAX]; /* as /proc/mounts shows it, and names in the mount */
    size_t root;
    struct limefile_index *index = limefs_view_index(fs, view);
    int err = limefile_index_get(index, ordinal, &record);
    limefile_index_free(index);
    if (err)
        return -ESTALE;
    struct limefile_range range = {.offset = record.data_offset,
                                   .bytes = record.bytes,
                                   .has_job = fs->job != NULL,
                                   .path = path};
    struct stat st = limefs_view_stat(fs, view);
    range.container = limefile_identity_of(&st);
    if (files && !stored_part(files, number, &range))
        return -ENODATA;
    if (!limefs_job_name(fs, view, path, sizeof path, &root) ||
        !limefs_view_is_unchanged(fs, view))
        return -ENODATA;
    return limefile_range_encode(&range, text);
}

int limefs_range_of_record(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                           char text[LIMEFILE_RANGE_TEXT_MAX])
{
    int len = limefs_view_pin(fs, view);
    if (len)
        return len;
    len = is_open_to_all(fs, view) ? limefs_caller_may(view->fd, R_OK) : -ENODATA;
    if (len == 0)
        len = encode(fs, view, ordinal, NULL, 0, text);
    limefs_view_unpin(fs, view);
    return len;
}

int limefs_range_of_face(struct limefs *fs, struct limefs_face *face, uint64_t ordinal,
                         char text[LIMEFILE_RANGE_TEXT_MAX])
{
    struct limefile_face_entry entry;
    int len = limefs_face_enter(fs, face);
    if (len)
        return len;
    struct limefs_view *view = limefs_face_view(face);
    bool file = limefs_face_entry_of(face, ordinal, &entry) && !entry.directory;
    len = file && is_open_to_all(fs, view) ? limefs_caller_may(view->fd, R_OK) : -ENODATA;
    if (len == 0)
        len = encode(fs, view, limefs_face_record(face), limefs_face_files(face), ordinal - 1,
                     text);
    limefs_face_leave(fs, face);
    return len;
}
