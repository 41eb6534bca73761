/*
 * limeconvert.h - a record's numbers in another precision or byte order, one after the other:
 * what most computed faces are (limeface.h), for who computes parts of them elsewhere.
 */
#ifndef LIMECONVERT_H
#define LIMECONVERT_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: none. Numbers are IEEE 754's, of 4 or 8 bytes, and big-endian as they are stored.
 */
struct limefile_conversion {
    unsigned from, to; /* bytes of a number, stored and computed */
    bool little;       /* computed ones are little-endian */
};

bool limefile_conversion_is_valid(const struct limefile_conversion *);

/* `count` numbers from `in` to `out`, which do not overlap and lie anywhere. The conversion is
 * a valid one. */
void limefile_convert(const struct limefile_conversion *, void *out, const void *in,
                      size_t count);

#endif
