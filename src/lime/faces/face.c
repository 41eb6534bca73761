/* face.c - an open face: list its files, find the source of their bytes, and read them
 *
 * A Zarr group, format 2, has one array, "field", with a chunk for each time slice:
 *
 *     0 .zgroup  1 .zattrs  2 .zmetadata  3 field/  4 field/.zarray  5 field/.zattrs
 *     6 field/0.0.0  7 field/1.0.0 ... */
#define _GNU_SOURCE
#include "face.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MIN = 3, /* digits in a time slice's name */
    ZARR_FOLDER = 3,
    ZARR_CHUNKS = 6,
    KEY_MAX = 2 * LIMEFILE_ARRAY_DIMS_MAX + 1,
};

static const struct {
    const char *name;
    uint64_t parent;
    int text; /* index in face->text; < 0: a directory */
} zarr_files[ZARR_CHUNKS] = {
    {".zgroup", 0, 0},
    {".zattrs", 0, 1},
    {".zmetadata", 0, 2},
    {"field", 0, -1},
    {".zarray", ZARR_FOLDER + 1, 3},
    {".zattrs", ZARR_FOLDER + 1, 4},
};

/* A file: bytes that the face owns, then data, then again bytes that the face owns. */
struct face_file {
    struct face_text head, tail;
    enum limefile_face_what what;
    uint64_t at; /* STORED: offset of the data in the record */
    uint64_t bytes;
};

/* ---- opening ---- */

static unsigned digits_of(uint64_t last)
{
    unsigned digits = 1;
    for (; last >= 10; last /= 10)
        digits++;
    return digits < DIGITS_MIN ? DIGITS_MIN : digits;
}

static void find_slices(struct limefile_face *face)
{
    const struct limefile_array *a = &face->layout.array;
    face->slices = a->lattice > 1 ? a->shape[0] : 1;
    face->slice_bytes = a->bytes / face->slices;
    face->digits = digits_of(face->slices - 1);
}

static int open_h5(struct limefile_face *face, const struct limefile_field *field)
{
    struct face_h5 h5 = {0};
    int err = face_h5_make(field, &face->layout, &h5);
    face->own = h5.bytes;
    face->text[0].bytes = h5.before;
    face->text[1] = (struct face_text){h5.before, h5.after};
    return err;
}

int limefile_face_open(const struct limefile_field *field, const struct limefile_facename *name,
                       struct limefile_face **out)
{
    struct face_layout layout;
    int err = face_layout_of(field, &layout);
    *out = NULL;
    if (!err && !face_layout_has(&layout.array, name))
        err = LIMEFILE_E_STATE;
    if (err)
        return err;
    struct limefile_face *face = calloc(1, sizeof *face);
    if (!face)
        return -ENOMEM;
    face->name = *name;
    face->layout = layout;
    find_slices(face);
    if (name->kind == LIMEFILE_FACE_NPY)
        err = face_npy_open(face);
    else if (name->kind == LIMEFILE_FACE_H5)
        err = open_h5(face, field);
    else if (name->kind == LIMEFILE_FACE_ZARR)
        err = face_zarr_open(face, field);
    else if (limefile_face_is_whole(name))
        err = face_gauge_open(face, field);
    if (err)
        limefile_face_close(face);
    else
        *out = face;
    return err;
}

void limefile_face_close(struct limefile_face *face)
{
    if (face) {
        limefile_gauge_image_free(face->image);
        free(face->own);
    }
    free(face);
}

/* ---- listing files ---- */

/* Writes the key of a chunk without its first number: ".0.0.0" */
static void chunk_key(const struct face_layout *layout, char out[KEY_MAX])
{
    char *at = out;
    for (unsigned i = 1; i < layout->array.dims; i++)
        at = stpcpy(at, ".0");
    *at = '\0';
}

static void zarr_entry(const struct limefile_face *face, uint64_t number,
                       struct limefile_face_entry *out)
{
    char key[KEY_MAX];
    if (number < ZARR_CHUNKS) {
        out->parent = zarr_files[number].parent;
        out->directory = zarr_files[number].text < 0;
        snprintf(out->name, sizeof out->name, "%s", zarr_files[number].name);
        return;
    }
    chunk_key(&face->layout, key);
    out->parent = ZARR_FOLDER + 1;
    snprintf(out->name, sizeof out->name, "%" PRIu64 "%s", number - ZARR_CHUNKS, key);
}

static bool zarr_find(const struct limefile_face *face, uint64_t parent, const char *name,
                      uint64_t *number)
{
    char key[KEY_MAX];
    uint64_t slice;
    for (uint64_t i = 0; i < ZARR_CHUNKS; i++)
        if (zarr_files[i].parent == parent && strcmp(zarr_files[i].name, name) == 0) {
            *number = i;
            return true;
        }
    size_t digits = strspn(name, "0123456789");
    chunk_key(&face->layout, key);
    if (parent != ZARR_FOLDER + 1 || !limefile_text_number(name, digits, &slice) ||
        (digits > 1 && name[0] == '0') || strcmp(name + digits, key) != 0 ||
        slice >= face->slices)
        return false;
    *number = ZARR_CHUNKS + slice;
    return true;
}

/* Returns the parts of a file; false: there is no such number. A directory is empty. */
static bool file_of(const struct limefile_face *face, uint64_t number, struct face_file *out)
{
    *out = (struct face_file){.what = LIMEFILE_FACE_STORED};
    if (number >= limefile_face_entries(face))
        return false;
    switch (face->name.kind) {
    case LIMEFILE_FACE_SLICES:
        out->at = number * face->slice_bytes;
        out->bytes = face->slice_bytes;
        return true;
    case LIMEFILE_FACE_ZARR:
        if (number >= ZARR_CHUNKS) {
            out->at = (number - ZARR_CHUNKS) * face->slice_bytes;
            out->bytes = face->slice_bytes;
        } else if (zarr_files[number].text >= 0) {
            out->head = face->text[zarr_files[number].text];
        }
        return true;
    default:
        break;
    }
    if (face->image) {
        out->what = LIMEFILE_FACE_COMPUTED;
        out->bytes = limefile_gauge_image_size(face->image);
        return true;
    }
    out->head = face->text[0];
    out->tail = face->text[1];
    out->bytes = face->computed ? face->compute.bytes : face->layout.array.bytes;
    if (face->computed)
        out->what = LIMEFILE_FACE_COMPUTED;
    return true;
}

static uint64_t size_of(const struct face_file *file)
{
    return file->head.bytes + file->bytes + file->tail.bytes;
}

uint64_t limefile_face_entries(const struct limefile_face *face)
{
    return face->name.kind == LIMEFILE_FACE_ZARR     ? ZARR_CHUNKS + face->slices
           : face->name.kind == LIMEFILE_FACE_SLICES ? face->slices
                                                     : 1;
}

void limefile_face_entry(const struct limefile_face *face, uint64_t number,
                         struct limefile_face_entry *out)
{
    struct face_file file;
    *out = (struct limefile_face_entry){.parent = 0};
    if (!file_of(face, number, &file))
        return;
    if (face->name.kind == LIMEFILE_FACE_ZARR)
        zarr_entry(face, number, out);
    else if (face->name.kind == LIMEFILE_FACE_SLICES)
        snprintf(out->name, sizeof out->name, "%0*" PRIu64, (int)face->digits, number);
    if (!out->directory)
        out->bytes = size_of(&file);
}

bool limefile_face_find(const struct limefile_face *face, uint64_t parent, const char *name,
                        uint64_t *number)
{
    size_t len = strlen(name);
    *number = 0;
    switch (face->name.kind) {
    case LIMEFILE_FACE_ZARR:
        return zarr_find(face, parent, name, number);
    case LIMEFILE_FACE_SLICES:
        return parent == 0 && len == face->digits && limefile_text_number(name, len, number) &&
               *number < face->slices;
    default:
        return parent == 0 && len == 0;
    }
}

/* ---- reading files ---- */

static void piece_of(const struct limefile_face *face, const struct face_file *file,
                     uint64_t offset, struct limefile_face_piece *out)
{
    *out = (struct limefile_face_piece){.what = LIMEFILE_FACE_OWN};
    if (offset < file->head.bytes) {
        out->bytes = file->head.bytes - offset;
        out->own = face->own + file->head.at + offset;
        return;
    }
    offset -= file->head.bytes;
    if (offset < file->bytes) {
        out->what = file->what;
        out->bytes = file->bytes - offset;
        out->at = file->at + offset;
        return;
    }
    offset -= file->bytes;
    if (offset < file->tail.bytes) {
        out->bytes = file->tail.bytes - offset;
        out->own = face->own + file->tail.at + offset;
    }
}

void limefile_face_piece(const struct limefile_face *face, uint64_t number, uint64_t offset,
                         struct limefile_face_piece *out)
{
    struct face_file file;
    file_of(face, number, &file);
    piece_of(face, &file, offset, out);
}

ssize_t limefile_face_read_lent(const struct limefile_face *face, uint64_t number, void *buf,
                                size_t n, uint64_t offset, limefile_face_lend_fn *lend,
                                void *context)
{
    struct face_file file;
    struct limefile_face_piece piece;
    unsigned char *out = buf;
    size_t done = 0;
    int err = 0;
    if (face->image)
        return face_gauge_read(face, buf, n, offset, lend, context);
    file_of(face, number, &file);
    while (done < n && !err) {
        piece_of(face, &file, offset + done, &piece);
        if (piece.bytes == 0)
            break;
        size_t part = piece.bytes < n - done ? (size_t)piece.bytes : n - done;
        if (piece.what == LIMEFILE_FACE_OWN)
            memcpy(out + done, piece.own, part);
        else if (piece.what == LIMEFILE_FACE_STORED)
            err = face_read_stored(out + done, part, piece.at, lend, context);
        else
            err = face_compute_read(&face->compute, out + done, part,
                                    offset + done - file.head.bytes, lend, context);
        done += part;
    }
    return err ? err : (ssize_t)done;
}
