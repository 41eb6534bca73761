/* array.c - grow arrays */
#define _GNU_SOURCE
#include "array.h"

#include <stdlib.h>
#include <string.h>

bool limefile_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    void *old, *bigger;
    if (count <= *capacity)
        return true;
    size_t more = *capacity + *capacity / 2 + 16;
    more = more < count ? count : more;
    memcpy(&old, array, sizeof old);
    bigger = reallocarray(old, more, element_bytes);
    if (!bigger)
        return false;
    memcpy(array, &bigger, sizeof bigger);
    *capacity = more;
    return true; /* cppcheck-suppress memleak */
}
