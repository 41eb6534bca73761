/* export.c - an open export: list its files, find the source of their bytes, and read them
 *
 * A Zarr group, format 2, has one array, "field", with a chunk for each time slice. Entries:
 *
 *     0 .zgroup  1 .zattrs  2 .zmetadata  3 field/  4 field/.zarray  5 field/.zattrs
 *     6 field/0.0.0  7 field/1.0.0 ... */
#define _GNU_SOURCE
#include "export.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MIN = 3, /* fewest digits in a time slice's name */
    ZARR_DIRECTORY = 3,
    ZARR_CHUNKS = 6,
    KEY_MAX = 2 * LIMEFILE_ARRAY_DIMS_MAX + 1,
};

static const struct {
    const char *name;
    uint64_t parent;
    int text; /* index in export->text; < 0: a directory */
} zarr_files[ZARR_CHUNKS] = {
    {".zgroup", 0, 0},
    {".zattrs", 0, 1},
    {".zmetadata", 0, 2},
    {"field", 0, -1},
    {".zarray", ZARR_DIRECTORY + 1, 3},
    {".zattrs", ZARR_DIRECTORY + 1, 4},
};

/* The three parts of a file in order: head, data and tail. Any of them may be empty. */
struct file_parts {
    struct export_text head, tail;      /* the export's own bytes before and after the data */
    enum limefile_export_source source; /* of the data */
    uint64_t at;                        /* STORED: offset of the data in the record */
    uint64_t bytes;                     /* of the data */
};

/* ---- opening ---- */

static unsigned count_slice_digits(uint64_t last)
{
    unsigned digits = 1;
    for (; last >= 10; last /= 10)
        digits++;
    return digits < DIGITS_MIN ? DIGITS_MIN : digits;
}

static void init_slices(struct limefile_export *export)
{
    const struct limefile_array *a = &export->layout.array;
    export->slices = a->lattice > 1 ? a->shape[0] : 1;
    export->slice_bytes = a->bytes / export->slices;
    export->digits = count_slice_digits(export->slices - 1);
}

static int open_hdf5(struct limefile_export *export, const struct limefile_field *field)
{
    struct h5_file h5 = {0};
    int err = h5_build(field, &export->layout, &h5);
    export->own_bytes = h5.bytes;
    export->text[0].bytes = h5.before;
    export->text[1] = (struct export_text){h5.before, h5.after};
    return err;
}

int limefile_export_open(const struct limefile_field *field,
                         const struct limefile_export_spec *spec, struct limefile_export **out)
{
    struct export_layout layout;
    int err = export_layout_init(field, &layout);
    *out = NULL;
    if (!err && !export_supports_array(&layout.array, spec))
        err = LIMEFILE_E_STATE;
    if (err)
        return err;
    struct limefile_export *export = calloc(1, sizeof *export);
    if (!export)
        return -ENOMEM;
    export->spec = *spec;
    export->layout = layout;
    init_slices(export);
    if (spec->kind == LIMEFILE_EXPORT_NPY)
        err = export_npy_open(export);
    else if (spec->kind == LIMEFILE_EXPORT_H5)
        err = open_hdf5(export, field);
    else if (spec->kind == LIMEFILE_EXPORT_ZARR)
        err = export_zarr_open(export, field);
    else if (limefile_export_is_whole_file(spec))
        err = export_gauge_open(export, field);
    if (err)
        limefile_export_close(export);
    else
        *out = export;
    return err;
}

void limefile_export_close(struct limefile_export *export)
{
    if (export) {
        limefile_gauge_image_free(export->image);
        free(export->own_bytes);
    }
    free(export);
}

/* ---- listing files ---- */

/* Writes the key of a chunk without its first number: ".0.0.0" */
static void chunk_key(const struct export_layout *layout, char out[KEY_MAX])
{
    char *at = out;
    for (unsigned i = 1; i < layout->array.dims; i++)
        at = stpcpy(at, ".0");
    *at = '\0';
}

static void zarr_entry(const struct limefile_export *export, uint64_t number,
                       struct limefile_export_entry *out)
{
    char key[KEY_MAX];
    if (number < ZARR_CHUNKS) {
        out->parent = zarr_files[number].parent;
        out->is_dir = zarr_files[number].text < 0;
        snprintf(out->name, sizeof out->name, "%s", zarr_files[number].name);
        return;
    }
    chunk_key(&export->layout, key);
    out->parent = ZARR_DIRECTORY + 1;
    snprintf(out->name, sizeof out->name, "%" PRIu64 "%s", number - ZARR_CHUNKS, key);
}

static bool zarr_find(const struct limefile_export *export, uint64_t parent, const char *name,
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
    chunk_key(&export->layout, key);
    if (parent != ZARR_DIRECTORY + 1 || !limefile_parse_number(name, digits, &slice) ||
        (digits > 1 && name[0] == '0') || strcmp(name + digits, key) != 0 ||
        slice >= export->slices)
        return false;
    *number = ZARR_CHUNKS + slice;
    return true;
}

/* Finds the parts of a file; false: no entry has this number. A directory has empty parts. */
static bool find_file_parts(const struct limefile_export *export, uint64_t number,
                            struct file_parts *out)
{
    *out = (struct file_parts){.source = LIMEFILE_EXPORT_STORED};
    if (number >= limefile_export_entry_count(export))
        return false;
    switch (export->spec.kind) {
    case LIMEFILE_EXPORT_SLICES:
        out->at = number * export->slice_bytes;
        out->bytes = export->slice_bytes;
        return true;
    case LIMEFILE_EXPORT_ZARR:
        if (number >= ZARR_CHUNKS) {
            out->at = (number - ZARR_CHUNKS) * export->slice_bytes;
            out->bytes = export->slice_bytes;
        } else if (zarr_files[number].text >= 0) {
            out->head = export->text[zarr_files[number].text];
        }
        return true;
    default:
        break;
    }
    if (export->image) {
        out->source = LIMEFILE_EXPORT_COMPUTED;
        out->bytes = limefile_gauge_image_size(export->image);
        return true;
    }
    out->head = export->text[0];
    out->tail = export->text[1];
    out->bytes = export->computed ? export->compute.bytes : export->layout.array.bytes;
    if (export->computed)
        out->source = LIMEFILE_EXPORT_COMPUTED;
    return true;
}

static uint64_t file_size(const struct file_parts *file)
{
    return file->head.bytes + file->bytes + file->tail.bytes;
}

uint64_t limefile_export_entry_count(const struct limefile_export *export)
{
    return export->spec.kind == LIMEFILE_EXPORT_ZARR     ? ZARR_CHUNKS + export->slices
           : export->spec.kind == LIMEFILE_EXPORT_SLICES ? export->slices
                                                         : 1;
}

void limefile_export_entry(const struct limefile_export *export, uint64_t number,
                           struct limefile_export_entry *out)
{
    struct file_parts file;
    *out = (struct limefile_export_entry){.parent = 0};
    if (!find_file_parts(export, number, &file))
        return;
    if (export->spec.kind == LIMEFILE_EXPORT_ZARR)
        zarr_entry(export, number, out);
    else if (export->spec.kind == LIMEFILE_EXPORT_SLICES)
        snprintf(out->name, sizeof out->name, "%0*" PRIu64, (int)export->digits, number);
    if (!out->is_dir)
        out->bytes = file_size(&file);
}

bool limefile_export_find(const struct limefile_export *export, uint64_t parent,
                          const char *name, uint64_t *number)
{
    size_t len = strlen(name);
    *number = 0;
    switch (export->spec.kind) {
    case LIMEFILE_EXPORT_ZARR:
        return zarr_find(export, parent, name, number);
    case LIMEFILE_EXPORT_SLICES:
        return parent == 0 && len == export->digits &&
               limefile_parse_number(name, len, number) && *number < export->slices;
    default:
        return parent == 0 && len == 0;
    }
}

/* ---- reading files ---- */

/* Fills *out for the bytes from `offset` to the end of the part that contains `offset`. */
static void find_piece(const struct limefile_export *export, const struct file_parts *file,
                       uint64_t offset, struct limefile_export_range *out)
{
    *out = (struct limefile_export_range){.source = LIMEFILE_EXPORT_OWN};
    if (offset < file->head.bytes) {
        out->bytes = file->head.bytes - offset;
        out->own = export->own_bytes + file->head.at + offset;
        return;
    }
    offset -= file->head.bytes;
    if (offset < file->bytes) {
        out->source = file->source;
        out->bytes = file->bytes - offset;
        out->at = file->at + offset;
        return;
    }
    offset -= file->bytes;
    if (offset < file->tail.bytes) {
        out->bytes = file->tail.bytes - offset;
        out->own = export->own_bytes + file->tail.at + offset;
    }
}

void limefile_export_range(const struct limefile_export *export, uint64_t number,
                           uint64_t offset, struct limefile_export_range *out)
{
    struct file_parts file;
    find_file_parts(export, number, &file);
    find_piece(export, &file, offset, out);
}

ssize_t limefile_export_read(const struct limefile_export *export, uint64_t number, void *buf,
                             size_t n, uint64_t offset, limefile_export_read_fn *read_record,
                             void *context)
{
    struct file_parts file;
    struct limefile_export_range piece;
    unsigned char *out = buf;
    size_t done = 0;
    int err = 0;
    if (export->image)
        return export_gauge_read(export, buf, n, offset, read_record, context);
    find_file_parts(export, number, &file);
    while (done < n && !err) {
        find_piece(export, &file, offset + done, &piece);
        if (piece.bytes == 0)
            break;
        size_t part = piece.bytes < n - done ? (size_t)piece.bytes : n - done;
        if (piece.source == LIMEFILE_EXPORT_OWN)
            memcpy(out + done, piece.own, part);
        else if (piece.source == LIMEFILE_EXPORT_STORED)
            err = export_read_raw(out + done, part, piece.at, read_record, context);
        else
            err = compute_read(&export->compute, out + done, part,
                               offset + done - file.head.bytes, read_record, context);
        done += part;
    }
    return err ? err : (ssize_t)done;
}
