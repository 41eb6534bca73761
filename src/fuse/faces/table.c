/* table.c - where faces are found, and whose files are kept */
#include "face.h"
#include "fields.h"

#include <errno.h>
#include <stdlib.h>

enum {
    IDLE_MAX = 64, /* faces that nobody uses, whose files are kept for the next who does */
};

struct limefs_faces {
    struct limefs_face **buckets; /* by view and record: those of one record are together */
    size_t bucket_count, count;
    struct limefs_face *newest, *oldest; /* without users */
    unsigned idle;
    struct limefs_face_change *changes; /* under way */
};

int limefs_faces_begin(struct limefs *fs)
{
    static const struct limefs_view_watch watch = {
        .changed = limefs_fields_forget,
        .asleep = limefs_fields_forget,
        .freed = limefs_fields_forget,
    };
    struct limefs_faces *faces = calloc(1, sizeof *faces);
    if (!faces)
        return -ENOMEM;
    faces->bucket_count = 64;
    faces->buckets = calloc(faces->bucket_count, sizeof(struct limefs_face *));
    if (!faces->buckets) {
        free(faces);
        return -ENOMEM;
    }
    fs->faces = faces;
    limefs_view_watch(fs, &watch);
    return 0;
}

void limefs_faces_release(struct limefs *fs)
{
    if (!fs->faces)
        return;
    for (uint32_t i = 0; i < fs->slot_count; i++)
        if (fs->slots[i].use == LIMEFS_SLOT_FACE) {
            if (fs->slots[i].face->files)
                limefile_face_close(fs->slots[i].face->files);
            free(fs->slots[i].face);
        }
    free(fs->faces->buckets);
    free(fs->faces);
    fs->faces = NULL;
}

unsigned limefs_face_code(const struct limefile_facename *name)
{
    unsigned precision = name->precision == 32 ? 1 : name->precision == 64 ? 2 : 0;
    return (unsigned)name->kind | (name->even_odd ? 1u : 0) << 4 | precision << 5 |
           (name->little ? 1u : 0) << 7;
}

/* ---- by view, record and name ---- */

static struct limefs_face **bucket_of(const struct limefs_faces *faces, uint32_t slot,
                                      uint64_t ordinal)
{
    uint64_t hash = ((uint64_t)slot << 32 ^ ordinal) * UINT64_C(0x9e3779b97f4a7c15);
    return &faces->buckets[(hash ^ hash >> 32) & (faces->bucket_count - 1)];
}

struct limefs_face *limefs_face_find(struct limefs *fs, const struct limefs_view *view,
                                     uint64_t ordinal, const struct limefile_facename *name)
{
    struct limefs_face *face = *bucket_of(fs->faces, view->slot, ordinal);
    while (face && (face->view != view || face->ordinal != ordinal ||
                    limefs_face_code(&face->name) != limefs_face_code(name)))
        face = face->next;
    return face;
}

/* More buckets; without memory for them the old ones do, only slower. */
static void grow(struct limefs_faces *faces)
{
    struct limefs_face **old = faces->buckets;
    size_t count = faces->bucket_count;
    struct limefs_face **buckets = calloc(count * 2, sizeof(struct limefs_face *));
    if (!buckets)
        return;
    faces->buckets = buckets;
    faces->bucket_count = count * 2;
    for (size_t i = 0; i < count; i++)
        for (struct limefs_face *face = old[i], *next; face; face = next) {
            struct limefs_face **at = bucket_of(faces, face->view->slot, face->ordinal);
            next = face->next;
            face->next = *at;
            *at = face;
        }
    free(old);
}

int limefs_face_put(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_faces *faces = fs->faces;
    int err = limefs_slot_take(fs, LIMEFS_SLOT_FACE, face, &face->slot);
    if (err)
        return err;
    if (faces->count >= faces->bucket_count)
        grow(faces);
    struct limefs_face **at = bucket_of(faces, face->view->slot, face->ordinal);
    face->next = *at;
    *at = face;
    face->found = true;
    face->id = ++fs->ids;
    faces->count++;
    return 0;
}

void limefs_face_drop(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_face **at = bucket_of(fs->faces, face->view->slot, face->ordinal);
    if (!face->found)
        return;
    while (*at != face)
        at = &(*at)->next;
    *at = face->next;
    face->found = false;
    fs->faces->count--;
}

void limefs_faces_drop(struct limefs *fs, const struct limefs_view *view, uint64_t ordinal)
{
    struct limefs_face *face = *bucket_of(fs->faces, view->slot, ordinal);
    while (face) {
        struct limefs_face *next = face->next;
        if (face->view == view && face->ordinal == ordinal)
            limefs_face_drop(fs, face);
        face = next;
    }
}

/* ---- those that nobody uses ---- */

void limefs_face_wake(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_faces *faces = fs->faces;
    if (face->users++ > 0 || !face->files || limefs_face_is_kept(face))
        return;
    *(face->newer ? &face->newer->older : &faces->newest) = face->older;
    *(face->older ? &face->older->newer : &faces->oldest) = face->newer;
    face->newer = face->older = NULL;
    faces->idle--;
}

struct limefile_face *limefs_face_rest(struct limefs *fs, struct limefs_face *face)
{
    struct limefs_faces *faces = fs->faces;
    struct limefile_face *files = NULL;
    if (--face->users > 0 || !face->files || limefs_face_is_kept(face))
        return NULL;
    if (faces->idle == IDLE_MAX) {
        struct limefs_face *oldest = faces->oldest;
        files = oldest->files;
        limefs_face_wake(fs, oldest);
        oldest->files = NULL;
        oldest->users--;
    }
    face->older = faces->newest;
    *(faces->newest ? &faces->newest->newer : &faces->oldest) = face;
    faces->newest = face;
    faces->idle++;
    return files;
}

/* ---- records that are written to ---- */

bool limefs_face_is_changing(struct limefs *fs, const struct limefs_view *view,
                             uint64_t ordinal)
{
    const struct limefs_face_change *change = fs->faces->changes;
    while (change && (change->view != view || change->ordinal != ordinal))
        change = change->next;
    return change != NULL;
}

void limefs_face_change(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                        struct limefs_face_change *change)
{
    limefs_lock(&fs->lock);
    *change = (struct limefs_face_change){.next = fs->faces->changes,
                                          .at = &fs->faces->changes,
                                          .view = view,
                                          .ordinal = ordinal};
    if (change->next)
        change->next->at = &change->next;
    fs->faces->changes = change;
    limefs_faces_drop(fs, view, ordinal);
    limefs_unlock(&fs->lock);
}

/* It may be one of those that describe others. */
void limefs_face_changed(struct limefs *fs, struct limefs_view *view,
                         struct limefs_face_change *change)
{
    limefs_lock(&fs->lock);
    *change->at = change->next;
    if (change->next)
        change->next->at = change->at;
    limefs_faces_drop(fs, view, change->ordinal);
    limefs_fields_forget(view);
    limefs_unlock(&fs->lock);
}
