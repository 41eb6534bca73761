/* fieldjson.c - a field for scripts: the array that it is */
#include "fieldjson.h"
#include "limeface.h"

#include <inttypes.h>

void fieldjson_array(FILE *out, const struct limefile_field *field)
{
    struct limefile_array a;
    if (limefile_array_of(field, &a) != 0) {
        fputs("null", out);
        return;
    }
    fputs("{\"shape\": [", out);
    for (unsigned i = 0; i < a.dims; i++)
        fprintf(out, "%s%" PRIu64, i ? ", " : "", a.shape[i]);
    fprintf(out, "], \"lattice_dims\": %u, \"dtype\": ", a.lattice);
    if (a.precision)
        fprintf(out, "\">%c%u\"", a.complex ? 'c' : 'f', a.precision / 8 * (a.complex ? 2 : 1));
    else
        fputs("\"|u1\"", out);
    fprintf(out, ", \"offset\": %" PRIu64 "}", field->record.data_offset);
}
