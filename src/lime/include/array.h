/* array.h - make room in arrays that grow; inside of the libraries and programs */
#ifndef LIMEFILE_ARRAY_H
#define LIMEFILE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `count` elements; `array` is the address of the pointer to them, *capacity the
 * size of the array in elements. Returns false, with nothing changed, if there is no memory. */
bool limefile_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes);

#endif
