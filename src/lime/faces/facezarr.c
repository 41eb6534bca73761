/*
 * facezarr.c - a Zarr group, format 2, with one array, "field": a chunk for each time slice
 *
 *     0 .zgroup  1 .zattrs  2 .zmetadata  3 field/  4 field/.zarray  5 field/.zattrs
 *     6 field/0.0.0  7 field/1.0.0 ...
 */
#include "facefile.h"
#include "facetext.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ZARR_FOLDER = 3,
    ZARR_CHUNKS = 6,
};

static const struct {
    const char *name;
    uint64_t parent;
    int text; /* < 0: the directory */
} fixed[ZARR_CHUNKS] = {
    {".zgroup", 0, 0},
    {".zattrs", 0, 1},
    {".zmetadata", 0, 2},
    {"field", 0, -1},
    {".zarray", ZARR_FOLDER + 1, 3},
    {".zattrs", ZARR_FOLDER + 1, 4},
};

/* Puts what is new in `j` down as a file. */
static void end_text(struct limefile_face *face, unsigned i, const struct face_json *j,
                     size_t *from)
{
    face->text[i] = (struct face_text){*from, j->n - *from};
    *from = j->n;
}

static void copy_text(struct limefile_face *face, unsigned i, struct face_json *j)
{
    char *copy = j->failed ? NULL : strndup(j->at + face->text[i].at, face->text[i].bytes);
    if (copy)
        face_json_add(j, "%s", copy);
    else
        j->failed = true;
    free(copy);
}

int face_zarr_open(struct limefile_face *face, const struct limefile_field *field)
{
    struct face_json j = {0};
    size_t from = 0;
    static const char *const keys[] = {
        "{\"zarr_consolidated_format\": 1, \"metadata\": "
        "{\".zgroup\": ",
        ", \".zattrs\": ", ", \"field/.zarray\": ", ", \"field/.zattrs\": "};
    static const unsigned texts[] = {0, 1, 3, 4};
    face_json_add(&j, "{\"zarr_format\": 2}");
    end_text(face, 0, &j, &from);
    face_json_attributes(&j, field, &face->layout);
    end_text(face, 1, &j, &from);
    face_json_array(&j, &face->layout);
    end_text(face, 3, &j, &from);
    face_json_dimensions(&j, &face->layout);
    end_text(face, 4, &j, &from);
    for (unsigned i = 0; i < 4; i++) {
        face_json_add(&j, "%s", keys[i]);
        copy_text(face, texts[i], &j);
    }
    face_json_add(&j, "}}");
    end_text(face, 2, &j, &from);
    face->own = (unsigned char *)j.at;
    return j.failed ? -ENOMEM : 0;
}

uint64_t face_zarr_entries(const struct limefile_face *face)
{
    return ZARR_CHUNKS + face->slices;
}

void face_zarr_entry(const struct limefile_face *face, uint64_t number,
                     struct limefile_face_entry *out)
{
    char key[FACE_KEY_MAX];
    if (number < ZARR_CHUNKS) {
        out->parent = fixed[number].parent;
        out->directory = fixed[number].text < 0;
        snprintf(out->name, sizeof out->name, "%s", fixed[number].name);
        return;
    }
    face_json_key(&face->layout, key);
    out->parent = ZARR_FOLDER + 1;
    snprintf(out->name, sizeof out->name, "%" PRIu64 "%s", number - ZARR_CHUNKS, key);
}

bool face_zarr_find(const struct limefile_face *face, uint64_t parent, const char *name,
                    uint64_t *number)
{
    char key[FACE_KEY_MAX];
    uint64_t slice;
    for (uint64_t i = 0; i < ZARR_CHUNKS; i++)
        if (fixed[i].parent == parent && strcmp(fixed[i].name, name) == 0) {
            *number = i;
            return true;
        }
    size_t digits = strspn(name, "0123456789");
    face_json_key(&face->layout, key);
    if (parent != ZARR_FOLDER + 1 || !face_slice_parse(name, digits, &slice) ||
        (digits > 1 && name[0] == '0') || strcmp(name + digits, key) != 0 ||
        slice >= face->slices)
        return false;
    *number = ZARR_CHUNKS + slice;
    return true;
}

void face_zarr_file(const struct limefile_face *face, uint64_t number, struct face_file *out)
{
    if (number < ZARR_CHUNKS) {
        if (fixed[number].text >= 0)
            out->head = face->text[fixed[number].text];
        return;
    }
    out->at = (number - ZARR_CHUNKS) * face->slice_bytes;
    out->bytes = face->slice_bytes;
}
