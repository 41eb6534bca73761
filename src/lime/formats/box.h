/* box.h - boxes of sites, periodic; inside of src/lime/formats */
#ifndef LIMEFILE_BOX_H
#define LIMEFILE_BOX_H

#include "limesites.h"

struct box {
    uint64_t base[3], width[3]; /* x, y, z: widths at most the extent; it may wrap around */
};

/* How far `at` is from the base, going up; below the width if it is inside. */
static inline uint64_t box_local(const struct box *box, const uint64_t extent[4], int d,
                                 uint64_t at)
{
    return at >= box->base[d] ? at - box->base[d] : at + extent[d] - box->base[d];
}

/* One layer more below, where the box is not the whole extent. */
void box_grow(struct box *, const uint64_t extent[4]);

uint64_t box_sites(const struct box *);

/* The box at time t, x fastest, into `out`. */
int box_read(const struct limefile_sites *, const struct box *, uint64_t t, void *out);

/* The largest box, at one time, that the sites [first, first + count) begin with, and that is
 * read in that order; how many sites it has. `planes`: at most so many. */
uint64_t box_of_run(const uint64_t extent[4], uint64_t first, uint64_t count, uint64_t planes,
                    struct box *out, uint64_t *t);

#endif
