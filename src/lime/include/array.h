/* array.h - grow arrays. For the libraries and programs of this project only. */
#ifndef LIMEFILE_ARRAY_H
#define LIMEFILE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `count` elements in an array; `array` is the address of its pointer, and
 * *capacity its size in elements. Returns false, with nothing changed, if there is no
 * memory. */
bool limefile_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes);

#endif
