/* facetext.c - numpy's header, and the files of a Zarr group as JSON */
#define _GNU_SOURCE
#include "face.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numpy: a header of version 1.0, then the array ---- */

enum {
    PREFIX_BYTES = 10, /* magic, version, length of the rest */
    ALIGN = 64,
    HEADER_MAX = 512, /* 13 numbers of 19 digits */
};

/* Even sites before odd ones: two halves, if they are alike. */
static unsigned even_odd_shape(const struct limefile_face *face,
                               uint64_t shape[LIMEFILE_ARRAY_DIMS_MAX])
{
    const struct limefile_array *a = &face->layout.array;
    const uint64_t sites = face->compute.order.sites;
    unsigned dims = 0;
    if (sites % 2 == 0)
        shape[dims++] = 2;
    shape[dims] = sites / (dims + 1);
    dims++;
    for (unsigned i = a->lattice; i < a->dims; i++)
        shape[dims++] = a->shape[i];
    return dims;
}

static size_t print_header(const struct limefile_face *face, char out[HEADER_MAX])
{
    const struct limefile_array *a = &face->layout.array;
    uint64_t shape[LIMEFILE_ARRAY_DIMS_MAX];
    char dtype[FACE_DTYPE_MAX];
    unsigned dims = a->dims;
    memcpy(shape, a->shape, sizeof shape);
    if (face->name.even_odd)
        dims = even_odd_shape(face, shape);
    face_layout_dtype(a, face->name.precision ? face->name.precision : a->precision,
                      face->name.little, dtype);
    int n =
        snprintf(out, HEADER_MAX, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
    for (unsigned i = 0; i < dims; i++)
        n += snprintf(out + n, HEADER_MAX - (size_t)n, "%s%" PRIu64, i ? ", " : "", shape[i]);
    n += snprintf(out + n, HEADER_MAX - (size_t)n, dims == 1 ? ",), }" : "), }");
    return (size_t)n;
}

int face_npy_open(struct limefile_face *face)
{
    const struct limefile_facename *name = &face->name;
    const struct limefile_array *a = &face->layout.array;
    char text[HEADER_MAX];
    face->computed =
        name->even_odd || name->little || (name->precision && name->precision != a->precision);
    int err = face->computed ? face_compute_init(&face->compute, &face->layout, name) : 0;
    if (err)
        return err;
    size_t n = print_header(face, text);
    size_t whole = (PREFIX_BYTES + n + 1 + ALIGN - 1) / ALIGN * ALIGN;
    face->own = malloc(whole);
    if (!face->own)
        return -ENOMEM;
    memset(face->own, ' ', whole);
    memcpy(face->own, "\x93NUMPY\x01", 8); /* version 1.0, with the literal's NUL */
    face->own[8] = (unsigned char)((whole - PREFIX_BYTES) & 0xff);
    face->own[9] = (unsigned char)((whole - PREFIX_BYTES) >> 8);
    memcpy(face->own + PREFIX_BYTES, text, n);
    face->own[whole - 1] = '\n';
    face->text[0].bytes = whole;
    return 0;
}

/* ---- JSON put together in memory ---- */

/* Zero to begin with. `failed`: out of memory, and the rest is missing. */
struct json {
    char *at; /* malloc */
    size_t n, room;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void json_add(struct json *, const char *format,
                                                           ...);

static bool reserve(struct json *j, size_t n)
{
    if (j->failed || j->n + n < j->room)
        return !j->failed;
    size_t room = 2 * (j->n + n) + 256;
    char *bigger = realloc(j->at, room);
    if (!bigger) {
        j->failed = true;
        return false;
    }
    j->at = bigger;
    j->room = room;
    return true;
}

static void json_add(struct json *j, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n >= 0 && reserve(j, (size_t)n + 1)) {
        vsnprintf(j->at + j->n, (size_t)n + 1, format, again);
        j->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

/* Quoted; what is not printable ASCII, '/' and '%' as %XX. */
static void json_text(struct json *j, const char *text)
{
    char plain[3 * LIMEFILE_TYPE_BYTES + 1];
    size_t n = limefile_name_encode(text, strlen(text), plain, sizeof plain);
    json_add(j, "\"");
    for (size_t i = 0; i < n; i++)
        json_add(j, plain[i] == '"' || plain[i] == '\\' ? "\\%c" : "%c", plain[i]);
    json_add(j, "\"");
}

static void add_numbers(struct json *j, const char *name, const uint64_t *number,
                        unsigned count)
{
    json_add(j, ", \"%s\": [", name);
    for (unsigned i = 0; i < count; i++)
        json_add(j, "%s%" PRIu64, i ? ", " : "", number[i]);
    json_add(j, "]");
}

static void json_attributes(struct json *j, const struct limefile_field *f,
                            const struct face_layout *layout)
{
    json_add(j, "{\"record_type\": ");
    json_text(j, f->record.type);
    json_add(j, ", \"record\": %" PRIu64 ", \"field\": ", f->record.ordinal);
    json_text(j, f->name);
    json_add(j, ", \"precision\": %u", layout->array.precision);
    if (f->lattice.dims)
        add_numbers(j, "lattice", f->lattice.extent, f->lattice.dims);
    if (f->boxed && f->lattice.dims && !f->halved) {
        add_numbers(j, "lower", f->lower, f->lattice.dims);
        add_numbers(j, "upper", f->upper, f->lattice.dims);
    }
    if (f->has_checksum)
        json_add(j, ", \"scidac_checksum\": \"%08" PRIx32 " %08" PRIx32 "\"", f->checksum.suma,
                 f->checksum.sumb);
    json_add(j, "}");
}

static void add_shape(struct json *j, const struct face_layout *layout, const char *name,
                      bool chunk)
{
    const struct limefile_array *a = &layout->array;
    json_add(j, "\"%s\": [", name);
    for (unsigned i = 0; i < a->dims; i++)
        json_add(j, "%s%" PRIu64, i ? ", " : "",
                 chunk && i == 0 && a->lattice > 1 ? 1 : a->shape[i]);
    json_add(j, "], ");
}

static void json_array(struct json *j, const struct face_layout *layout)
{
    char dtype[FACE_DTYPE_MAX];
    face_layout_dtype(&layout->array, layout->array.precision, false, dtype);
    json_add(j, "{\"zarr_format\": 2, ");
    add_shape(j, layout, "shape", false);
    add_shape(j, layout, "chunks", true);
    json_add(j,
             "\"dtype\": \"%s\", \"compressor\": null, \"filters\": null, "
             "\"fill_value\": null, \"order\": \"C\"}",
             dtype);
}

static void json_dimensions(struct json *j, const struct face_layout *layout)
{
    json_add(j, "{\"_ARRAY_DIMENSIONS\": [");
    for (unsigned i = 0; i < layout->array.dims; i++)
        json_add(j, "%s\"%s\"", i ? ", " : "", layout->name[i]);
    json_add(j, "]}");
}

/* ---- Zarr ---- */

/* Puts what is new in `j` down as a file. */
static void end_text(struct limefile_face *face, unsigned i, const struct json *j, size_t *from)
{
    face->text[i] = (struct face_text){*from, j->n - *from};
    *from = j->n;
}

static void copy_text(struct limefile_face *face, unsigned i, struct json *j)
{
    char *copy = j->failed ? NULL : strndup(j->at + face->text[i].at, face->text[i].bytes);
    if (copy)
        json_add(j, "%s", copy);
    else
        j->failed = true;
    free(copy);
}

int face_zarr_open(struct limefile_face *face, const struct limefile_field *field)
{
    struct json j = {0};
    size_t from = 0;
    static const char *const keys[] = {
        "{\"zarr_consolidated_format\": 1, \"metadata\": "
        "{\".zgroup\": ",
        ", \".zattrs\": ", ", \"field/.zarray\": ", ", \"field/.zattrs\": "};
    static const unsigned texts[] = {0, 1, 3, 4};
    json_add(&j, "{\"zarr_format\": 2}");
    end_text(face, 0, &j, &from);
    json_attributes(&j, field, &face->layout);
    end_text(face, 1, &j, &from);
    json_array(&j, &face->layout);
    end_text(face, 3, &j, &from);
    json_dimensions(&j, &face->layout);
    end_text(face, 4, &j, &from);
    for (unsigned i = 0; i < 4; i++) {
        json_add(&j, "%s", keys[i]);
        copy_text(face, texts[i], &j);
    }
    json_add(&j, "}}");
    end_text(face, 2, &j, &from);
    face->own = (unsigned char *)j.at;
    return j.failed ? -ENOMEM : 0;
}
