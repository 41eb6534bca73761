/* convert.c - a conversion alone, without the face that it is of */
#include "limeconvert.h"
#include "compute.h"

static bool is_size(unsigned bytes)
{
    return bytes == 4 || bytes == 8;
}

bool limefile_conversion_is_valid(const struct limefile_conversion *c)
{
    return is_size(c->from) && is_size(c->to);
}

void limefile_convert(const struct limefile_conversion *c, void *out, const void *in,
                      size_t count)
{
    face_kernel(c->from, c->to, c->little)(out, in, count);
}
