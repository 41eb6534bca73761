/* facename.c - parse and print names of exports, and find the exports that an array supports */
#include "face.h"

#include <stdio.h>
#include <string.h>

enum {
    EVEN_ODD_DIMS_MIN = 2,
    EVEN_ODD_DIMS_MAX = 4, /* there are two conventions for five dimensions */
    SLICES_DIMS_MIN = 2,
};

/* Removes the suffix from the first *n bytes of name; false: no suffix, or nothing else. */
static bool cut_end(const char *name, size_t *n, const char *suffix)
{
    size_t len = strlen(suffix);
    if (*n <= len || memcmp(name + *n - len, suffix, len) != 0)
        return false;
    *n -= len;
    return true;
}

static const char *const suffixes[] = {
    [LIMEFILE_FACE_NPY] = ".npy",         [LIMEFILE_FACE_H5] = ".h5",
    [LIMEFILE_FACE_ZARR] = ".zarr",       [LIMEFILE_FACE_SLICES] = ".t",
    [LIMEFILE_FACE_NERSC] = ".nersc",     [LIMEFILE_FACE_MILC] = ".milc",
    [LIMEFILE_FACE_OPENQCD] = ".openqcd",
};

bool limefile_facename_parse(const char *name, struct limefile_facename *out, size_t *stem)
{
    const size_t kinds = sizeof suffixes / sizeof suffixes[0];
    size_t n = strlen(name), kind = 0;
    while (kind < kinds && !cut_end(name, &n, suffixes[kind]))
        kind++;
    if (kind == kinds)
        return false;
    *out = (struct limefile_facename){.kind = (enum limefile_facekind)kind};
    if (out->kind == LIMEFILE_FACE_NPY) {
        out->little = cut_end(name, &n, ".le");
        out->precision = cut_end(name, &n, ".f4") ? 32 : cut_end(name, &n, ".f8") ? 64 : 0;
        out->even_odd = cut_end(name, &n, ".eo");
    }
    *stem = n;
    return true;
}

void limefile_facename_print(const struct limefile_facename *name,
                             char out[LIMEFILE_FACE_SUFFIX_MAX])
{
    bool npy = name->kind == LIMEFILE_FACE_NPY;
    snprintf(out, LIMEFILE_FACE_SUFFIX_MAX, "%s%s%s%s", npy && name->even_odd ? ".eo" : "",
             !npy                    ? ""
             : name->precision == 32 ? ".f4"
             : name->precision == 64 ? ".f8"
                                     : "",
             npy && name->little ? ".le" : "", suffixes[name->kind]);
}

bool limefile_face_is_directory(const struct limefile_facename *name)
{
    return name->kind == LIMEFILE_FACE_ZARR || name->kind == LIMEFILE_FACE_SLICES;
}

static bool has_even_odd(const struct limefile_array *a)
{
    return a->lattice >= EVEN_ODD_DIMS_MIN && a->lattice <= EVEN_ODD_DIMS_MAX;
}

/* Widened data must not be longer than a file can be. */
static bool has_precision(const struct limefile_array *a, unsigned precision)
{
    if (a->precision == 0)
        return false;
    return precision <= a->precision || a->bytes <= LIMEFILE_BYTES_MAX / 4;
}

bool export_layout_has(const struct limefile_array *a, const struct limefile_facename *name)
{
    switch (name->kind) {
    case LIMEFILE_FACE_H5:
        return h5_is_supported();
    case LIMEFILE_FACE_ZARR:
        return true;
    case LIMEFILE_FACE_SLICES:
        return a->lattice >= SLICES_DIMS_MIN;
    case LIMEFILE_FACE_NERSC:
    case LIMEFILE_FACE_MILC:
    case LIMEFILE_FACE_OPENQCD:
        return export_gauge_fits(a, name);
    default:
        break;
    }
    if (name->precision && name->precision != 32 && name->precision != 64)
        return false;
    return (!name->even_odd || has_even_odd(a)) && (!name->little || a->precision != 0) &&
           (name->precision == 0 || has_precision(a, name->precision));
}

bool limefile_facename_of(const struct limefile_array *a, unsigned i,
                          struct limefile_facename *out)
{
    const struct limefile_facename listed[] = {
        {.kind = LIMEFILE_FACE_NPY},
        {.kind = LIMEFILE_FACE_H5},
        {.kind = LIMEFILE_FACE_ZARR},
        {.kind = LIMEFILE_FACE_SLICES},
        {.kind = LIMEFILE_FACE_NPY, .little = true},
        {.kind = LIMEFILE_FACE_NPY, .precision = a->precision == 32 ? 64 : 32},
        {.kind = LIMEFILE_FACE_NPY, .even_odd = true},
        {.kind = LIMEFILE_FACE_NERSC},
        {.kind = LIMEFILE_FACE_MILC},
        {.kind = LIMEFILE_FACE_OPENQCD},
    };
    for (unsigned k = 0; k < sizeof listed / sizeof listed[0]; k++)
        if (export_layout_has(a, &listed[k]) && i-- == 0) {
            *out = listed[k];
            return true;
        }
    return false;
}

const char *limefile_face_why_not(const struct limefile_field *field,
                                  const struct limefile_facename *name)
{
    struct export_layout layout;
    if (export_layout_of(field, &layout) != 0)
        return field->sites && field->site_bytes ? "its length contradicts its description"
                                                 : "the number of its sites is unknown";
    const struct limefile_array *a = &layout.array;
    if (name->kind == LIMEFILE_FACE_H5)
        return h5_is_supported() ? "the HDF5 library is not installed, or does not support it"
                                 : "built without HDF5";
    if (name->kind == LIMEFILE_FACE_SLICES)
        return "it has no time slices";
    if (limefile_face_is_whole(name))
        return "not an SU(3) configuration, or the format does not support its lattice";
    if (a->precision == 0 && (name->little || name->precision))
        return "it is not known to contain real numbers";
    return name->even_odd && !has_even_odd(a) ? "its lattice needs 2 to 4 dimensions"
                                              : "the file would be too large";
}
