/* array.h - make room in arrays that grow; inside of the libraries and programs */
#ifndef LIMEFILE_ARRAY_H
#define LIMEFILE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* Makes room for `count` elements: `array` points to the pointer to them, *capacity is how many
 * there is room for. False without memory; then the array is as it was. */
bool limefile_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes);

#endif
