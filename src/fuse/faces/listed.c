/* listed.c - the names of all faces, for lists */
#include "face.h"
#include "fields.h"

#include <string.h>

/* False: it is longer than a name can be. */
static bool name_of(const struct limefile_record *record, const struct limefile_facename *face,
                    char name[LIMEFILE_NAME_MAX + 1])
{
    char suffix[LIMEFILE_FACE_SUFFIX_MAX];
    size_t len = limefile_name_of(record, name);
    limefile_facename_print(face, suffix);
    if (len + strlen(suffix) > LIMEFILE_NAME_MAX)
        return false;
    strcpy(name + len, suffix);
    return true;
}

bool limefs_face_listed(struct limefs *fs, struct limefs_view *view,
                        const struct limefs_fields *fields, uint64_t i,
                        char name[LIMEFILE_NAME_MAX + 1], struct stat *st, uint64_t *next)
{
    struct limefile_field field;
    struct limefile_array array;
    struct limefile_facename face;
    uint64_t number = i / LIMEFS_FACES_EACH, count = fields->fields.count;
    *next = number + 1 < count ? (number + 1) * LIMEFS_FACES_EACH : 0;
    if (number >= count)
        return false;
    limefile_fields_get(&fields->fields, (size_t)number, &field);
    if (limefile_array_of(&field, &array) != 0 ||
        !limefile_facename_of(&array, (unsigned)(i % LIMEFS_FACES_EACH), &face))
        return false;
    if (i % LIMEFS_FACES_EACH < LIMEFS_FACES_EACH - 1)
        *next = i + 1;
    if (!name_of(&field.record, &face, name))
        return false;
    bool directory = limefile_face_is_directory(&face);
    memset(st, 0, sizeof *st);
    st->st_ino = limefs_shown_face(fs, limefs_view_stat(fs, view).st_ino, field.record.ordinal,
                                   limefs_face_code(&face), directory ? 0 : 1);
    st->st_mode = directory ? S_IFDIR : S_IFREG;
    return true;
}
