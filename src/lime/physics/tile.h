/*
 * tile.h - the arithmetic of the physics check, on many sites at once; inside of this room
 *
 * A tile holds up to TILE_SITES neighbours along x, each of a site's 72 real numbers for all of
 * them in a row, in this machine's order, and after them the site that follows in x. So a
 * compiler makes vector instructions of loops over sites, and the neighbour in x is the same
 * memory one number later.
 *
 * Each number comes from the same operations in the same order, whatever instructions the
 * processor has: this room is compiled without fused multiply-add, so results have the same
 * bits on every machine.
 */
#ifndef LIMEFILE_PHYSICS_TILE_H
#define LIMEFILE_PHYSICS_TILE_H

#include "limesites.h"

enum {
    TILE_SITES = 32,
    TILE_PITCH = 40, /* odd in cache lines: the rows of a tile are spread over all sets */
    TILE_REALS = LIMEFILE_SITE_REALS * TILE_PITCH,
};

/* Fills a tile from `count` sites as they are stored; `next` is the site that follows in x.
 * What is beyond in the tile stays as it is. */
void tile_unpack(double *tile, const void *sites, unsigned count, const void *next,
                 unsigned precision);

/* What comes of a tile. */
struct tile_sums {
    double space, time;            /* sum over sites and planes of Re tr U_p */
    double trace;                  /* sum over sites and directions of Re tr U */
    double unitarity, determinant; /* the largest squares of the deviations */
    double square;                 /* the largest sum over a site of all these squares ... */
    bool finite;                   /* ... if that is a number at each site */
};

/* `next`: the tiles at the neighbours in y, z and t; NULL: space and time are 0. */
typedef void tile_measure_fn(const double *tile, const double *const next[3], unsigned count,
                             struct tile_sums *out);

/* For any processor, and the fastest for this one: both give the same bits. */
tile_measure_fn tile_measure_plain;
tile_measure_fn *tile_measure_best(void);

#endif
