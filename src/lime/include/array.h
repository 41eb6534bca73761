/* array.h - grow arrays. For the libraries and programs of this project only. */
#ifndef LIMEFILE_ARRAY_H
#define LIMEFILE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `count` elements; `array` is the address of the pointer to them, *capacity the
 * number that has room. Without memory, returns false and changes nothing. */
bool limefile_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes);

#endif
