/* tile.h - internal: compute plaquettes, traces and deviations from SU(3) of many sites at once
 *
 * A tile holds up to TILE_SITES sites that are neighbours along x, and the next site in x. It
 * has 72 rows, one for each real number of a site, of TILE_PITCH doubles each: element i of a
 * row belongs to site i. Compilers can therefore vectorize loops over sites, and the value of
 * the neighbour in x is the next element of the row.
 *
 * Results have the same bits on every machine, because each number comes from the same
 * operations in the same order, and this directory is compiled without fused multiply-add. */
#ifndef LIMEFILE_PHYSICS_TILE_H
#define LIMEFILE_PHYSICS_TILE_H

#include "limesites.h"

enum {
    TILE_SITES = 32,
    TILE_PITCH = 40, /* doubles: an odd number of cache lines, so rows use all cache sets */
    TILE_REALS = LIMEFILE_SITE_REALS * TILE_PITCH,
};

/* Fills a tile from `count` consecutive sites and from `next`, the site that follows them in x,
 * in ILDG's layout (limesites.h). precision: 32 or 64 bits. Other elements are unchanged. */
void tile_unpack(double *tile, const void *sites, unsigned count, const void *next,
                 unsigned precision);

struct tile_sums {
    double space_plaquettes, time_plaquettes; /* sums over sites and planes of Re tr U_p */
    double trace;                             /* sum over sites and directions of Re tr U */
    double unitarity, determinant;            /* squares of the largest deviations */
    double largest_square; /* of all sites, the largest sum of a site's squared deviations */
    bool finite;           /* each site's sum of squared deviations is finite */
};

/* Measures the first `count` sites of a tile. It may read all elements, so all must be set.
 * next: the next tiles in y, z and t; NULL: the sums of plaquettes are 0. */
typedef void tile_measure_fn(const double *tile, const double *const next[3], unsigned count,
                             struct tile_sums *out);

/* Works on any processor. tile_measure_best() returns the fastest function for this one. */
tile_measure_fn tile_measure_plain;
tile_measure_fn *tile_measure_best(void);

#endif
