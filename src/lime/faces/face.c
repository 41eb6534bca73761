/* face.c - an opened face: its files, what stands where in them, reading them */
#include "facefile.h"
#include "faceh5.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ---- */

static unsigned digits_of(uint64_t last)
{
    unsigned digits = 1;
    for (; last >= 10; last /= 10)
        digits++;
    return digits < FACE_DIGITS_MIN ? FACE_DIGITS_MIN : digits;
}

static int open_slices(struct limefile_face *face)
{
    const struct limefile_array *a = &face->layout.array;
    face->slices = a->lattice > 1 ? a->shape[0] : 1;
    face->slice_bytes = a->bytes / face->slices;
    face->digits = digits_of(face->slices - 1);
    return 0;
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
    open_slices(face);
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

/* ---- its files ---- */

bool face_slice_parse(const char *digits, size_t len, uint64_t *slice)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len; i++)
        if (digits[i] < '0' || digits[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (unsigned)(digits[i] - '0'), &n))
            return false;
    *slice = n;
    return len > 0;
}

/* What makes up a file; false: there is none of that number, or it is a directory. */
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
        face_zarr_file(face, number, out);
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
    return face->name.kind == LIMEFILE_FACE_ZARR     ? face_zarr_entries(face)
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
        face_zarr_entry(face, number, out);
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
        return face_zarr_find(face, parent, name, number);
    case LIMEFILE_FACE_SLICES:
        return parent == 0 && len == face->digits && face_slice_parse(name, len, number) &&
               *number < face->slices;
    default:
        return parent == 0 && len == 0;
    }
}

/* ---- their bytes ---- */

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

static int read_stored(void *buf, size_t n, uint64_t at, limefile_face_lend_fn *lend,
                       void *context)
{
    const void *data = buf;
    ssize_t came = lend(context, buf, n, at, &data);
    if (came < 0)
        return (int)came;
    if ((size_t)came != n)
        return LIMEFILE_E_SHRUNK;
    if (data != buf)
        memcpy(buf, data, n);
    return 0;
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
            err = read_stored(out + done, part, piece.at, lend, context);
        else
            err = face_compute_read(&face->compute, out + done, part,
                                    offset + done - file.head.bytes, lend, context);
        done += part;
    }
    return err ? err : (ssize_t)done;
}

/* Who reads lends what was read. */
struct reading {
    limefile_face_read_fn *read;
    void *context;
};

static ssize_t lend_read(void *context, void *buf, size_t n, uint64_t offset, const void **data)
{
    const struct reading *reading = context;
    *data = buf;
    return reading->read(reading->context, buf, n, offset);
}

ssize_t limefile_face_read(const struct limefile_face *face, uint64_t number, void *buf,
                           size_t n, uint64_t offset, limefile_face_read_fn *read,
                           void *context)
{
    struct reading reading = {read, context};
    return limefile_face_read_lent(face, number, buf, n, offset, lend_read, &reading);
}
