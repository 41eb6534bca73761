/* listed.c - the names of all faces, for lists */
#include "face.h"
#include "fields.h"
#include "limesites.h"

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

enum {
    EACH = 64, /* numbers for each field: more than a field has names */
};

bool limefs_face_is_configuration(const struct limefile_field *field)
{
    return limefile_field_configuration(field, NULL) == LIMEFILE_CONFIGURATION;
}

/* The i-th name of a field; false: it has not so many. */
static bool face_of(const struct limefile_field *field, uint64_t i,
                    struct limefile_facename *face)
{
    struct limefile_array array;
    return i < EACH && limefile_array_of(field, &array) == 0 &&
           limefile_facename_of(&array, (unsigned)i, face) &&
           (!limefile_face_is_whole(face) || limefs_face_is_configuration(field));
}

bool limefs_face_listed(struct limefs *fs, struct limefs_view *view,
                        const struct limefs_fields *fields, uint64_t *i,
                        char name[LIMEFILE_NAME_MAX + 1], struct stat *st)
{
    struct limefile_field field;
    struct limefile_facename face;
    while (*i / EACH < fields->fields.count) {
        limefile_fields_get(&fields->fields, (size_t)(*i / EACH), &field);
        if (!face_of(&field, *i % EACH, &face)) {
            *i += EACH - *i % EACH;
            continue;
        }
        ++*i;
        if (!name_of(&field.record, &face, name))
            continue;
        bool directory = limefile_face_is_directory(&face);
        struct stat container = limefs_view_stat(fs, view);
        memset(st, 0, sizeof *st);
        st->st_ino = limefs_shown_face(fs, &container, field.record.ordinal,
                                       limefs_face_code(&face), directory ? 0 : 1);
        st->st_mode = directory ? S_IFDIR : S_IFREG;
        return true;
    }
    return false;
}
