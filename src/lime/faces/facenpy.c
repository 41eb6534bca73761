/* facenpy.c - numpy's file: a header of version 1.0, then the array */
#include "facefile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static size_t print(const struct limefile_face *face, char out[HEADER_MAX])
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
    size_t n = print(face, text);
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
