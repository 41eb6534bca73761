/* export_npy_zarr.c - write numpy's header, and the files of a Zarr group as JSON */
#define _GNU_SOURCE
#include "export.h"

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

/* Fills shape and returns its length. If half of the sites are even, shape[0] is 2. */
static unsigned even_odd_shape(const struct limefile_export *export,
                               uint64_t shape[LIMEFILE_ARRAY_DIMS_MAX])
{
    const struct limefile_array *a = &export->layout.array;
    const uint64_t sites = export->compute.order.sites;
    unsigned dims = 0;
    if (sites % 2 == 0)
        shape[dims++] = 2;
    shape[dims] = sites / (dims + 1);
    dims++;
    for (unsigned i = a->lattice; i < a->dims; i++)
        shape[dims++] = a->shape[i];
    return dims;
}

static size_t print_npy_header(const struct limefile_export *export, char out[HEADER_MAX])
{
    const struct limefile_array *a = &export->layout.array;
    uint64_t shape[LIMEFILE_ARRAY_DIMS_MAX];
    char dtype[EXPORT_DTYPE_MAX];
    unsigned dims = a->dims;
    memcpy(shape, a->shape, sizeof shape);
    if (export->spec.even_odd)
        dims = even_odd_shape(export, shape);
    export_layout_dtype(a, export->spec.precision ? export->spec.precision : a->precision,
                        export->spec.little, dtype);
    int n =
        snprintf(out, HEADER_MAX, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
    for (unsigned i = 0; i < dims; i++)
        n += snprintf(out + n, HEADER_MAX - (size_t)n, "%s%" PRIu64, i ? ", " : "", shape[i]);
    n += snprintf(out + n, HEADER_MAX - (size_t)n, dims == 1 ? ",), }" : "), }");
    return (size_t)n;
}

int export_npy_open(struct limefile_export *export)
{
    const struct limefile_export_spec *spec = &export->spec;
    const struct limefile_array *a = &export->layout.array;
    char text[HEADER_MAX];
    export->computed =
        spec->even_odd || spec->little || (spec->precision && spec->precision != a->precision);
    int err = export->computed ? compute_init(&export->compute, &export->layout, spec) : 0;
    if (err)
        return err;
    size_t n = print_npy_header(export, text);
    size_t padded = (PREFIX_BYTES + n + 1 + ALIGN - 1) / ALIGN * ALIGN;
    export->own_bytes = malloc(padded);
    if (!export->own_bytes)
        return -ENOMEM;
    memset(export->own_bytes, ' ', padded);
    /* The literal's NUL is the minor version 0. */
    memcpy(export->own_bytes, "\x93NUMPY\x01", 8);
    export->own_bytes[8] = (unsigned char)((padded - PREFIX_BYTES) & 0xff);
    export->own_bytes[9] = (unsigned char)((padded - PREFIX_BYTES) >> 8);
    memcpy(export->own_bytes + PREFIX_BYTES, text, n);
    export->own_bytes[padded - 1] = '\n';
    export->text[0].bytes = padded;
    return 0;
}

/* ---- JSON ---- */

/* Writes a quoted string, with %XX for '/', '%' and all bytes that are not printable ASCII. */
static void json_string(FILE *j, const char *text)
{
    char plain[3 * LIMEFILE_TYPE_BYTES + 1];
    size_t n = limefile_name_encode(text, strlen(text), plain, sizeof plain);
    putc('"', j);
    for (size_t i = 0; i < n; i++)
        fprintf(j, "%s%c", plain[i] == '"' || plain[i] == '\\' ? "\\" : "", plain[i]);
    putc('"', j);
}

static void json_numbers(FILE *j, const char *name, const uint64_t *number, unsigned count)
{
    fprintf(j, ", \"%s\": [", name);
    for (unsigned i = 0; i < count; i++)
        fprintf(j, "%s%" PRIu64, i ? ", " : "", number[i]);
    putc(']', j);
}

static void json_attributes(FILE *j, const struct limefile_field *f,
                            const struct export_layout *layout)
{
    fputs("{\"record_type\": ", j);
    json_string(j, f->record.type);
    fprintf(j, ", \"record\": %" PRIu64 ", \"field\": ", f->record.ordinal);
    json_string(j, f->name);
    fprintf(j, ", \"precision\": %u", layout->array.precision);
    if (f->lattice.dims)
        json_numbers(j, "lattice", f->lattice.extent, f->lattice.dims);
    if (f->is_box && f->lattice.dims && !f->is_checkerboard) {
        json_numbers(j, "lower", f->lower, f->lattice.dims);
        json_numbers(j, "upper", f->upper, f->lattice.dims);
    }
    if (f->has_checksum)
        fprintf(j, ", \"scidac_checksum\": \"%08" PRIx32 " %08" PRIx32 "\"", f->checksum.suma,
                f->checksum.sumb);
    putc('}', j);
}

static void json_shape(FILE *j, const struct export_layout *layout, const char *key, bool chunk)
{
    const struct limefile_array *a = &layout->array;
    fprintf(j, "\"%s\": [", key);
    for (unsigned i = 0; i < a->dims; i++)
        fprintf(j, "%s%" PRIu64, i ? ", " : "",
                chunk && i == 0 && a->lattice > 1 ? 1 : a->shape[i]);
    fputs("], ", j);
}

static void json_array(FILE *j, const struct export_layout *layout)
{
    char dtype[EXPORT_DTYPE_MAX];
    export_layout_dtype(&layout->array, layout->array.precision, false, dtype);
    fprintf(j, "{\"zarr_format\": 2, ");
    json_shape(j, layout, "shape", false);
    json_shape(j, layout, "chunks", true);
    fprintf(j,
            "\"dtype\": \"%s\", \"compressor\": null, \"filters\": null, "
            "\"fill_value\": null, \"order\": \"C\"}",
            dtype);
}

static void json_dimensions(FILE *j, const struct export_layout *layout)
{
    fputs("{\"_ARRAY_DIMENSIONS\": [", j);
    for (unsigned i = 0; i < layout->array.dims; i++)
        fprintf(j, "%s\"%s\"", i ? ", " : "", layout->name[i]);
    fputs("]}", j);
}

/* ---- Zarr ---- */

#define ZARR_GROUP "{\"zarr_format\": 2}"

/* Sets the export's i-th text to the output after offset *from, and *from to the new end. */
static void finish_text(struct limefile_export *export, unsigned i, FILE *to, size_t *from)
{
    size_t end = (size_t)ftell(to);
    export->text[i] = (struct export_text){*from, end - *from};
    *from = end;
}

int export_zarr_open(struct limefile_export *export, const struct limefile_field *field)
{
    const struct export_layout *layout = &export->layout;
    char *text = NULL;
    size_t n, from = 0;
    FILE *to = open_memstream(&text, &n);
    if (!to)
        return -ENOMEM;
    fputs(ZARR_GROUP, to);
    finish_text(export, 0, to, &from);
    json_attributes(to, field, layout);
    finish_text(export, 1, to, &from);
    json_array(to, layout);
    finish_text(export, 3, to, &from);
    json_dimensions(to, layout);
    finish_text(export, 4, to, &from);
    fputs("{\"zarr_consolidated_format\": 1, \"metadata\": {\".zgroup\": " ZARR_GROUP
          ", \".zattrs\": ",
          to);
    json_attributes(to, field, layout);
    fputs(", \"field/.zarray\": ", to);
    json_array(to, layout);
    fputs(", \"field/.zattrs\": ", to);
    json_dimensions(to, layout);
    fputs("}}", to);
    finish_text(export, 2, to, &from);
    bool failed = ferror(to);
    failed |= fclose(to) != 0;
    export->own_bytes = (unsigned char *)text;
    return failed ? -ENOMEM : 0;
}
