/* sites.c - the sites of an SU(3) configuration in a container */

#include "limesites.h"

#include <string.h>

enum {
    BITS_OF_SITES = 55,
};

static int read_field(void *context, uint64_t first, uint64_t count, void *out)
{
    const struct limefile_sites_field *field = context;
    size_t n = (size_t)count * field->site_bytes;
    ssize_t came = limefile_read_full(field->source, out, n,
                                      field->data_offset + first * field->site_bytes);
    if (came < 0)
        return (int)came;
    return (size_t)came == n ? 0 : LIMEFILE_E_SHRUNK;
}

int limefile_sites_of_field(struct limefile_source *source, const struct limefile_field *field,
                            struct limefile_sites_field *context, struct limefile_sites *out)
{
    if (field->kind != LIMEFILE_KIND_GAUGE || strcmp(field->name, "su3gauge") != 0 ||
        field->lattice.dims != 4 || field->boxed || field->halved || field->disputed ||
        (field->precision != 32 && field->precision != 64) ||
        field->site_bytes != (uint64_t)LIMEFILE_SITE_REALS * (field->precision / 8) ||
        field->sites == 0 || field->sites >> BITS_OF_SITES != 0 ||
        !limefile_field_is_summable(field))
        return LIMEFILE_E_STATE;
    context->source = source;
    context->data_offset = field->record.data_offset;
    context->site_bytes = (size_t)field->site_bytes;
    memset(out, 0, sizeof *out);
    memcpy(out->extent, field->lattice.extent, sizeof out->extent);
    out->precision = field->precision;
    out->read = read_field;
    out->context = context;
    return 0;
}
