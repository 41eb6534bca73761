/* export_spec.c - parse and print names of exports, and find the exports of an array */
#include "export.h"

#include <stdio.h>
#include <string.h>

enum {
    EVEN_ODD_DIMS_MIN = 2,
    EVEN_ODD_DIMS_MAX = 4, /* with five dimensions, programs disagree on which sites are even */
    SLICES_DIMS_MIN = 2,
};

/* Reduces *n, the length of `name`, by the suffix. false: no suffix, or nothing before it. */
static bool cut_end(const char *name, size_t *n, const char *suffix)
{
    size_t len = strlen(suffix);
    if (*n <= len || memcmp(name + *n - len, suffix, len) != 0)
        return false;
    *n -= len;
    return true;
}

static const char *const suffixes[] = {
    [LIMEFILE_EXPORT_NPY] = ".npy",         [LIMEFILE_EXPORT_H5] = ".h5",
    [LIMEFILE_EXPORT_ZARR] = ".zarr",       [LIMEFILE_EXPORT_SLICES] = ".t",
    [LIMEFILE_EXPORT_NERSC] = ".nersc",     [LIMEFILE_EXPORT_MILC] = ".milc",
    [LIMEFILE_EXPORT_OPENQCD] = ".openqcd",
};

bool limefile_export_parse(const char *name, struct limefile_export_spec *out, size_t *stem)
{
    const size_t kinds = sizeof suffixes / sizeof suffixes[0];
    size_t n = strlen(name), kind = 0;
    while (kind < kinds && !cut_end(name, &n, suffixes[kind]))
        kind++;
    if (kind == kinds)
        return false;
    *out = (struct limefile_export_spec){.kind = (enum limefile_export_kind)kind};
    if (out->kind == LIMEFILE_EXPORT_NPY) {
        out->little = cut_end(name, &n, ".le");
        out->precision = cut_end(name, &n, ".f4") ? 32 : cut_end(name, &n, ".f8") ? 64 : 0;
        out->even_odd = cut_end(name, &n, ".eo");
    }
    *stem = n;
    return true;
}

void limefile_export_suffix(const struct limefile_export_spec *spec,
                            char out[LIMEFILE_EXPORT_SUFFIX_MAX])
{
    bool npy = spec->kind == LIMEFILE_EXPORT_NPY;
    snprintf(out, LIMEFILE_EXPORT_SUFFIX_MAX, "%s%s%s%s", npy && spec->even_odd ? ".eo" : "",
             !npy                    ? ""
             : spec->precision == 32 ? ".f4"
             : spec->precision == 64 ? ".f8"
                                     : "",
             npy && spec->little ? ".le" : "", suffixes[spec->kind]);
}

bool limefile_export_is_directory(const struct limefile_export_spec *spec)
{
    return spec->kind == LIMEFILE_EXPORT_ZARR || spec->kind == LIMEFILE_EXPORT_SLICES;
}

static bool has_even_odd(const struct limefile_array *a)
{
    return a->lattice >= EVEN_ODD_DIMS_MIN && a->lattice <= EVEN_ODD_DIMS_MAX;
}

/* Returns true if the data are real numbers that fit into a file with this precision. */
static bool has_precision(const struct limefile_array *a, unsigned precision)
{
    if (a->precision == 0)
        return false;
    return precision <= a->precision || a->bytes <= LIMEFILE_BYTES_MAX / 4;
}

bool export_supports_array(const struct limefile_array *a,
                           const struct limefile_export_spec *spec)
{
    switch (spec->kind) {
    case LIMEFILE_EXPORT_H5:
        return h5_is_supported();
    case LIMEFILE_EXPORT_ZARR:
        return true;
    case LIMEFILE_EXPORT_SLICES:
        return a->lattice >= SLICES_DIMS_MIN;
    case LIMEFILE_EXPORT_NERSC:
    case LIMEFILE_EXPORT_MILC:
    case LIMEFILE_EXPORT_OPENQCD:
        return export_gauge_fits(a, spec);
    default:
        break;
    }
    if (spec->precision && spec->precision != 32 && spec->precision != 64)
        return false;
    return (!spec->even_odd || has_even_odd(a)) && (!spec->little || a->precision != 0) &&
           (spec->precision == 0 || has_precision(a, spec->precision));
}

bool limefile_export_get_listed(const struct limefile_array *a, unsigned i,
                                struct limefile_export_spec *out)
{
    const struct limefile_export_spec listed[] = {
        {.kind = LIMEFILE_EXPORT_NPY},
        {.kind = LIMEFILE_EXPORT_H5},
        {.kind = LIMEFILE_EXPORT_ZARR},
        {.kind = LIMEFILE_EXPORT_SLICES},
        {.kind = LIMEFILE_EXPORT_NPY, .little = true},
        {.kind = LIMEFILE_EXPORT_NPY, .precision = a->precision == 32 ? 64 : 32},
        {.kind = LIMEFILE_EXPORT_NPY, .even_odd = true},
        {.kind = LIMEFILE_EXPORT_NERSC},
        {.kind = LIMEFILE_EXPORT_MILC},
        {.kind = LIMEFILE_EXPORT_OPENQCD},
    };
    for (unsigned k = 0; k < sizeof listed / sizeof listed[0]; k++)
        if (export_supports_array(a, &listed[k]) && i-- == 0) {
            *out = listed[k];
            return true;
        }
    return false;
}

const char *limefile_export_why_unsupported(const struct limefile_field *field,
                                            const struct limefile_export_spec *spec)
{
    struct export_layout layout;
    if (export_layout_init(field, &layout) != 0)
        return field->sites && field->site_bytes ? "its length contradicts its description"
                                                 : "the number of its sites is unknown";
    const struct limefile_array *a = &layout.array;
    if (spec->kind == LIMEFILE_EXPORT_H5)
        return h5_is_supported() ? "the HDF5 library is not installed, or does not support it"
                                 : "built without HDF5";
    if (spec->kind == LIMEFILE_EXPORT_SLICES)
        return "it has no time slices";
    if (limefile_export_is_whole_file(spec))
        return "not an SU(3) configuration, or the format does not support its lattice";
    if (a->precision == 0 && (spec->little || spec->precision))
        return "it is not known to contain real numbers";
    return spec->even_odd && !has_even_odd(a) ? "its lattice needs 2 to 4 dimensions"
                                              : "the file would be too large";
}
