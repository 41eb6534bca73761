/* openqcd.h - openQCD's order: of each odd point the eight links around it; inside of
 * src/lime/formats */
#ifndef LIMEFILE_OPENQCD_H
#define LIMEFILE_OPENQCD_H

#include "box.h"
#include "limegauge.h"

enum {
    OPENQCD_POINT_BYTES = 8 * LIMEFILE_LINK_REALS * 8,
};

/* Sites as ILDG stores them, in memory. */
struct openqcd_sites {
    const unsigned char *at;
    struct box box;
};

/* The points [first, first + count) of the file, in its order, all at one time; `now` and
 * `before` have what they need at that time, and below it. */
void openqcd_encode(const uint64_t extent[4], unsigned precision,
                    const struct openqcd_sites *now, const struct openqcd_sites *before,
                    uint64_t first, uint64_t count, unsigned char *out);

/* The same; the sites that it needs are read. */
int openqcd_make(const struct limefile_sites *, uint64_t first, uint64_t count,
                 unsigned char *out);

#endif
