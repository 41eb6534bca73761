/* look.c - faces looked up */
#include "face.h"
#include "fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a container's only configuration is called as a whole file. */
#define WHOLE "conf"

static bool is_same(const struct limefs_face *a, const struct limefs_face *b)
{
    return a->digest == b->digest && a->generation == b->generation;
}

/* Takes the files over, also after an error. One user, of no lookup yet. */
static int make_face(struct limefs *fs, struct limefs_view *view,
                     const struct limefile_field *field, const struct limefile_facename *name,
                     struct limefile_face *files, struct limefs_face **out)
{
    struct limefs_face *face = calloc(1, sizeof *face), *other;
    if (!face) {
        limefile_face_close(files);
        return -ENOMEM;
    }
    *face = (struct limefs_face){.view = view,
                                 .ordinal = field->record.ordinal,
                                 .generation =
                                     limefs_view_generation(fs, view, field->record.ordinal),
                                 .digest = limefs_face_digest(field),
                                 .name = *name,
                                 .users = 1,
                                 .files = files};
    atomic_init(&face->ready, limefile_face_is_ready(files));
    limefs_view_lookup(fs, view, 1);
    limefs_lock(&fs->lock);
    other = limefs_face_find(fs, view, face->ordinal, name);
    bool beaten = other && is_same(other, face);
    if (beaten)
        limefs_face_wake(fs, other);
    else if (other)
        limefs_face_drop(fs, other);
    int err = beaten ? 0 : limefs_face_put(fs, face);
    limefs_unlock(&fs->lock);
    if (err || beaten)
        limefs_face_bury(fs, face);
    *out = beaten ? other : face;
    return err;
}

/* One that is known, if it is still right: with one user more. */
static struct limefs_face *known_face(struct limefs *fs, struct limefs_view *view,
                                      const struct limefile_field *field,
                                      const struct limefile_facename *name)
{
    uint64_t ordinal = field->record.ordinal, digest = limefs_face_digest(field);
    uint64_t generation = limefs_view_generation(fs, view, ordinal);
    limefs_lock(&fs->lock);
    struct limefs_face *face = limefs_face_find(fs, view, ordinal, name);
    if (face && (face->digest != digest || face->generation != generation)) {
        limefs_face_drop(fs, face);
        face = NULL;
    }
    if (face)
        limefs_face_wake(fs, face);
    limefs_unlock(&fs->lock);
    return face;
}

/* One in use keeps them. */
static bool has_files(struct limefs *fs, const struct limefs_face *face)
{
    limefs_lock(&fs->lock);
    bool has = face->files != NULL;
    limefs_unlock(&fs->lock);
    return has;
}

/* Of a pinned view, which it holds: the face in use. */
static int face_of(struct limefs *fs, struct limefs_view *view, uint64_t ordinal,
                   const struct limefile_facename *name, struct limefs_face **out)
{
    struct limefs_fields *fields;
    struct limefile_field field;
    struct limefile_face *files;
    struct limefs_face *face = NULL;
    int err = limefs_face_describe(fs, view, ordinal, &fields, &field);
    if (!err && !(face = known_face(fs, view, &field, name))) {
        err = limefs_face_files_open(&field, name, &files);
        if (!err)
            err = make_face(fs, view, &field, name, files, &face);
    }
    limefs_fields_release(fields);
    if (!err && !has_files(fs, face)) {
        err = limefs_face_open_again(fs, face);
        if (err)
            limefs_face_let_go(fs, face);
    }
    *out = face;
    return err;
}

/* The only one. */
static int only_configuration(const struct limefile_fields *fields,
                              struct limefile_record *record)
{
    struct limefile_field field;
    unsigned found = 0;
    for (size_t i = 0; i < fields->count && found < 2; i++) {
        limefile_fields_get(fields, i, &field);
        if (!limefs_face_is_configuration(&field))
            continue;
        *record = field.record;
        found++;
    }
    return found == 1 ? 0 : LIMEFILE_E_NO_RECORD;
}

static int find_configuration(struct limefs *fs, struct limefs_node *container,
                              struct limefs_view **view, struct limefile_record *record)
{
    struct limefs_fields *fields = NULL;
    int err = limefs_view_current(fs, container, view);
    if (err)
        return err;
    err = limefs_fields_of(fs, *view, &fields);
    if (!err)
        err = only_configuration(&fields->fields, record);
    limefs_fields_release(fields);
    if (err)
        limefs_view_unpin(fs, *view);
    return err;
}

/* The record that the face would be of, in a pinned view. */
static int find_record(struct limefs *fs, struct limefs_node *container, const char *name,
                       struct limefile_facename *facename, struct limefs_view **view,
                       struct limefile_record *record)
{
    char stem[LIMEFILE_NAME_MAX + 1];
    size_t len;
    if (!limefile_facename_parse(name, facename, &len) || len == 0 || len >= sizeof stem)
        return LIMEFILE_E_NO_RECORD;
    memcpy(stem, name, len);
    stem[len] = '\0';
    int err = limefs_view_find(fs, container, stem, view, record);
    if (err == LIMEFILE_E_NO_RECORD && limefile_face_is_whole(facename) &&
        strcmp(stem, WHOLE) == 0)
        err = find_configuration(fs, container, view, record);
    return err;
}

int limefs_face_lookup(struct limefs *fs, struct limefs_node *container, const char *name,
                       struct limefs_face_entry *out)
{
    struct limefile_facename facename;
    struct limefs_view *view;
    struct limefile_record record;
    struct limefile_face_entry entry;
    struct limefs_face *face;
    int err = find_record(fs, container, name, &facename, &view, &record);
    if (err)
        return err;
    err = face_of(fs, view, record.ordinal, &facename, &face);
    if (!err) {
        uint64_t ordinal = limefile_face_is_directory(&facename) ? 0 : 1;
        if (limefs_face_entry_of(face, ordinal, &entry))
            limefs_face_take(fs, face, ordinal, &entry, out);
        else
            err = -EIO;
        limefs_face_let_go(fs, face);
    }
    limefs_view_unpin(fs, view);
    return err;
}

bool limefs_face_is_there(struct limefs *fs, struct limefs_node *container, const char *name)
{
    struct limefile_facename facename;
    struct limefs_view *view;
    struct limefile_record record;
    struct limefs_face *face;
    if (limefs_view_find(fs, container, name, &view, &record) == 0) {
        limefs_view_unpin(fs, view);
        return false; /* a record of that name comes first */
    }
    if (find_record(fs, container, name, &facename, &view, &record) != 0)
        return false;
    int err = face_of(fs, view, record.ordinal, &facename, &face);
    if (!err)
        limefs_face_let_go(fs, face);
    limefs_view_unpin(fs, view);
    return err == 0;
}

int limefs_face_lookup_in(struct limefs *fs, struct limefs_face *face, uint64_t parent,
                          const char *name, struct limefs_face_entry *out)
{
    uint64_t number;
    struct limefile_face_entry entry;
    int err = limefs_face_enter(fs, face);
    if (err)
        return err;
    if (!limefs_face_entry_of(face, parent, &entry))
        err = -ESTALE;
    else if (!entry.directory)
        err = -ENOTDIR;
    else if (!limefile_face_find(face->files, parent, name, &number) ||
             !limefs_face_entry_of(face, number + 1, &entry))
        err = -ENOENT;
    else
        limefs_face_take(fs, face, number + 1, &entry, out);
    limefs_face_leave(fs, face);
    return err;
}
