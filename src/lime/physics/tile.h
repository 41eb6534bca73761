/* tile.h - internal: the arithmetic of the physics check, for many sites at once
 *
 * A tile has up to TILE_SITES sites that are neighbours along x, and the next site in x. Each
 * of the 72 real numbers of a site has a row with the values of all these sites, in this
 * machine's byte order. Therefore compilers can vectorize loops over sites, and the value of
 * the neighbour in x is the next number in the row.
 *
 * Results have the same bits on every machine, because each number comes from the same
 * operations in the same order: this directory is compiled without fused multiply-add. */
#ifndef LIMEFILE_PHYSICS_TILE_H
#define LIMEFILE_PHYSICS_TILE_H

#include "limesites.h"

enum {
    TILE_SITES = 32,
    TILE_PITCH = 40, /* an odd number of cache lines, so that rows use all sets of the cache */
    TILE_REALS = LIMEFILE_SITE_REALS * TILE_PITCH,
};

/* Fills a tile from `count` stored sites and the next site in x. The rest is unchanged. */
void tile_unpack(double *tile, const void *sites, unsigned count, const void *next,
                 unsigned precision);

/* The results for a tile. */
struct tile_sums {
    double space_plaquettes, time_plaquettes; /* sums over sites and planes of Re tr U_p */
    double trace;                             /* sum over sites and directions of Re tr U */
    double unitarity, determinant;            /* the largest squares of deviations */
    double largest_square; /* of all sites: the largest sum of the squares of a site's links */
    bool finite;           /* that sum is finite at each site, so largest_square is valid */
};

/* Measures a tile. next: the tiles next to it in y, z and t, or NULL: no plaquettes (sums 0).
 */
typedef void tile_measure_fn(const double *tile, const double *const next[3], unsigned count,
                             struct tile_sums *out);

/* For any processor, and the fastest for this one; both give the same bits. */
tile_measure_fn tile_measure_plain;
tile_measure_fn *tile_measure_best(void);

#endif
