/* links.h - links as bytes: orders, precisions, rows; inside of src/lime/formats */
#ifndef LIMEFILE_LINKS_H
#define LIMEFILE_LINKS_H

#include "bytes.h"
#include "limegauge.h"

#include <string.h>

enum {
    LINKS_TWO_ROWS = 12, /* reals */
};

/* How a file stores a link. */
struct links_form {
    unsigned precision; /* 32, 64 */
    unsigned rows;      /* 2, 3 */
    bool little;
};

size_t links_bytes(const struct links_form *); /* of one link */

/* `count` links between two forms. Three rows out of two: the third is computed. */
void links_convert(const struct links_form *from, const void *in, const struct links_form *to,
                   void *out, size_t count);

/* As ILDG has them: three rows, big-endian. */
struct links_form links_ildg(unsigned precision);

/* `reals` numbers, big-endian of that precision, as this machine has them. */
void links_reals(const void *in, unsigned precision, size_t reals, double *out);

/* ---- checksums over bytes as they are stored (sums.c) ---- */

/* n words of 32 bits: their sum. */
uint32_t links_sum(const void *data, size_t words, bool little);

/* n words, the first of which is the k-th of the data: added to both. */
void links_xor(const void *data, size_t words, bool little, uint64_t k, uint32_t *sum29,
               uint32_t *sum31);

#endif
