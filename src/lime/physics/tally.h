/* tally.h - largest deviations and bad links; inside of this room */
#ifndef LIMEFILE_PHYSICS_TALLY_H
#define LIMEFILE_PHYSICS_TALLY_H

#include "limephysics.h"
#include "tile.h"

/* Over the sites of a step, or of several. */
struct physics_sums {
    double space, time, trace;
};

/* Its values do not depend on the order in which it is put together. */
struct physics_tally {
    double unitarity, determinant; /* the largest */
    uint64_t nonfinite, bad_links, bad_sites;
    struct limefile_physics_bad first;
};
void tally_merge(struct physics_tally *, const struct physics_tally *other);

/* What it is judged by. */
struct bounds {
    const uint64_t *extent;
    double bound;
};

/* That of the precision, if none is given. */
double tally_bound(double given, unsigned precision);

/* Adds a tile of `count` sites, the first of which is at `at`, and what came of it: link by
 * link, where that says that something is wrong. */
void tally_tile(struct physics_tally *, const struct bounds *, const double *tile,
                unsigned count, const uint64_t at[4], const struct tile_sums *);

/* Of a configuration of so many sites, and of the sums over all of them: NaN where they are no
 * numbers. */
void tally_tell(const struct physics_tally *, double bound, const struct physics_sums *,
                double sites, struct limefile_physics *out);

#endif
