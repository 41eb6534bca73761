/* facetext.c - write numpy's header, and the files of a Zarr group as JSON */
#define _GNU_SOURCE
#include "face.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numpy: a header of version 1.0, then the array ---- */

enum {
    PREFIX_BYTES = 10, /* magic, version, length of the rest */
    ALIGN = 64,
    HEADER_MAX = 512, /* enough for 13 numbers of 19 digits */
};

/* If there are as many even sites as odd ones, a first dimension of extent 2 separates them. */
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
    /* The literal's NUL is the minor version 0. */
    memcpy(face->own, "\x93NUMPY\x01", 8);
    face->own[8] = (unsigned char)((whole - PREFIX_BYTES) & 0xff);
    face->own[9] = (unsigned char)((whole - PREFIX_BYTES) >> 8);
    memcpy(face->own + PREFIX_BYTES, text, n);
    face->own[whole - 1] = '\n';
    face->text[0].bytes = whole;
    return 0;
}

/* ---- JSON ---- */

/* Quotes a string; %XX replaces '/', '%' and everything that is not printable ASCII. */
static void json_text(FILE *j, const char *text)
{
    char plain[3 * LIMEFILE_TYPE_BYTES + 1];
    size_t n = limefile_name_encode(text, strlen(text), plain, sizeof plain);
    putc('"', j);
    for (size_t i = 0; i < n; i++)
        fprintf(j, "%s%c", plain[i] == '"' || plain[i] == '\\' ? "\\" : "", plain[i]);
    putc('"', j);
}

static void add_numbers(FILE *j, const char *name, const uint64_t *number, unsigned count)
{
    fprintf(j, ", \"%s\": [", name);
    for (unsigned i = 0; i < count; i++)
        fprintf(j, "%s%" PRIu64, i ? ", " : "", number[i]);
    putc(']', j);
}

static void json_attributes(FILE *j, const struct limefile_field *f,
                            const struct face_layout *layout)
{
    fputs("{\"record_type\": ", j);
    json_text(j, f->record.type);
    fprintf(j, ", \"record\": %" PRIu64 ", \"field\": ", f->record.ordinal);
    json_text(j, f->name);
    fprintf(j, ", \"precision\": %u", layout->array.precision);
    if (f->lattice.dims)
        add_numbers(j, "lattice", f->lattice.extent, f->lattice.dims);
    if (f->boxed && f->lattice.dims && !f->halved) {
        add_numbers(j, "lower", f->lower, f->lattice.dims);
        add_numbers(j, "upper", f->upper, f->lattice.dims);
    }
    if (f->has_checksum)
        fprintf(j, ", \"scidac_checksum\": \"%08" PRIx32 " %08" PRIx32 "\"", f->checksum.suma,
                f->checksum.sumb);
    putc('}', j);
}

static void add_shape(FILE *j, const struct face_layout *layout, const char *name, bool chunk)
{
    const struct limefile_array *a = &layout->array;
    fprintf(j, "\"%s\": [", name);
    for (unsigned i = 0; i < a->dims; i++)
        fprintf(j, "%s%" PRIu64, i ? ", " : "",
                chunk && i == 0 && a->lattice > 1 ? 1 : a->shape[i]);
    fputs("], ", j);
}

static void json_array(FILE *j, const struct face_layout *layout)
{
    char dtype[FACE_DTYPE_MAX];
    face_layout_dtype(&layout->array, layout->array.precision, false, dtype);
    fprintf(j, "{\"zarr_format\": 2, ");
    add_shape(j, layout, "shape", false);
    add_shape(j, layout, "chunks", true);
    fprintf(j,
            "\"dtype\": \"%s\", \"compressor\": null, \"filters\": null, "
            "\"fill_value\": null, \"order\": \"C\"}",
            dtype);
}

static void json_dimensions(FILE *j, const struct face_layout *layout)
{
    fputs("{\"_ARRAY_DIMENSIONS\": [", j);
    for (unsigned i = 0; i < layout->array.dims; i++)
        fprintf(j, "%s\"%s\"", i ? ", " : "", layout->name[i]);
    fputs("]}", j);
}

/* ---- Zarr ---- */

#define ZARR_GROUP "{\"zarr_format\": 2}"

/* Makes the text printed since *from the i-th file. */
static void end_text(struct limefile_face *face, unsigned i, FILE *to, size_t *from)
{
    size_t end = (size_t)ftell(to);
    face->text[i] = (struct face_text){*from, end - *from};
    *from = end;
}

int face_zarr_open(struct limefile_face *face, const struct limefile_field *field)
{
    const struct face_layout *layout = &face->layout;
    char *text = NULL;
    size_t n, from = 0;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return -ENOMEM;
    fputs(ZARR_GROUP, to);
    end_text(face, 0, to, &from);
    json_attributes(to, field, layout);
    end_text(face, 1, to, &from);
    json_array(to, layout);
    end_text(face, 3, to, &from);
    json_dimensions(to, layout);
    end_text(face, 4, to, &from);
    fputs("{\"zarr_consolidated_format\": 1, \"metadata\": {\".zgroup\": " ZARR_GROUP
          ", \".zattrs\": ",
          to);
    json_attributes(to, field, layout);
    fputs(", \"field/.zarray\": ", to);
    json_array(to, layout);
    fputs(", \"field/.zattrs\": ", to);
    json_dimensions(to, layout);
    fputs("}}", to);
    end_text(face, 2, to, &from);
    bool failed = ferror(to);
    failed |= fclose(to) != 0;
    face->own = (unsigned char *)text;
    return failed ? -ENOMEM : 0;
}
