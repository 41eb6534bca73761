/* openqcd.h - openQCD's order: of each odd point the eight links around it; inside of
 * src/lime/formats */
#ifndef LIMEFILE_OPENQCD_H
#define LIMEFILE_OPENQCD_H

#include "limegauge.h"

enum {
    OPENQCD_POINT_BYTES = 8 * LIMEFILE_LINK_REALS * 8,
};

/* A site as ILDG stores it. */
typedef const unsigned char *openqcd_site_fn(const void *context, const uint64_t at[4]);

/* The points [first, first + count) of the file, in its order. */
void openqcd_encode(const uint64_t extent[4], unsigned precision, openqcd_site_fn *site,
                    const void *context, uint64_t first, uint64_t count, unsigned char *out);

/* The same; the sites that it needs are read. */
int openqcd_make(const struct limefile_sites *, uint64_t first, uint64_t count,
                 unsigned char *out);

#endif
