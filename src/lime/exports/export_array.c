/* export_array.c - describe a field as an array: dimensions of the lattice, then of a site */
#include "export.h"

#include <stdio.h>

static const char *lattice_name(unsigned dims, unsigned i)
{
    static const char *const four[] = {"x", "y", "z", "t"};
    static const char *const five[] = {"s", "x", "y", "z", "t"}; /* as in the library Grid */
    static const char *const any[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    return dims == 4 ? four[i] : dims == 5 ? five[i] : any[i];
}

/* Adds the lattice's dimensions. Returns false if their product is not the number of sites. */
static bool add_lattice(const struct limefile_field *f, struct export_layout *out)
{
    uint64_t sites = 1;
    unsigned dims = f->lattice.dims;
    if (dims == 0 || dims > LIMEFILE_DIMS_MAX || f->is_checkerboard)
        return false;
    for (unsigned i = 0; i < dims; i++) {
        unsigned d = dims - 1 - i;
        uint64_t extent = f->is_box ? f->upper[d] - f->lower[d] + 1 : f->lattice.extent[d];
        if (extent == 0 || __builtin_mul_overflow(sites, extent, &sites))
            return false;
        out->array.shape[i] = extent;
        out->name[i] = lattice_name(dims, d);
        out->origin ^= f->is_box ? f->lower[d] & 1 : 0;
    }
    out->array.dims = out->array.lattice = dims;
    return sites == f->sites;
}

int export_layout_init(const struct limefile_field *f, struct export_layout *out)
{
    uint64_t bytes;
    struct limefile_siteshape site;
    if (f->sites == 0 || f->site_bytes == 0 ||
        __builtin_mul_overflow(f->sites, f->site_bytes, &bytes) || bytes != f->record.bytes ||
        bytes > LIMEFILE_BYTES_MAX)
        return LIMEFILE_E_STATE;
    *out = (struct export_layout){.origin = 0};
    if (f->kind == LIMEFILE_KIND_GLOBAL && f->sites == 1) {
        out->array.lattice = 0;
    } else if (!add_lattice(f, out)) {
        *out = (struct export_layout){.array = {.dims = 1, .lattice = 1}};
        out->array.shape[0] = f->sites;
        out->name[0] = "site";
    }
    limefile_siteshape_derive(f, &site);
    out->array.precision = site.precision;
    for (unsigned i = 0; i < site.dims; i++) {
        out->name[out->array.dims] = site.name[i];
        out->array.shape[out->array.dims++] = site.extent[i];
    }
    if (out->array.dims == 0) {
        out->name[0] = "component";
        out->array.shape[out->array.dims++] = 1;
    }
    out->array.complex = site.complex;
    out->array.bytes = bytes;
    return 0;
}

int limefile_array_from_field(const struct limefile_field *f, struct limefile_array *out)
{
    struct export_layout layout;
    int err = export_layout_init(f, &layout);
    if (!err)
        *out = layout.array;
    return err;
}

void export_layout_dtype(const struct limefile_array *a, unsigned precision, bool little,
                         char out[EXPORT_DTYPE_MAX])
{
    if (precision == 0)
        snprintf(out, EXPORT_DTYPE_MAX, "|u1");
    else
        snprintf(out, EXPORT_DTYPE_MAX, "%c%c%u", little ? '<' : '>', a->complex ? 'c' : 'f',
                 (a->complex ? 2 : 1) * precision / 8 % 100);
}
