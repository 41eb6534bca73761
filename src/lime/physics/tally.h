/* tally.h - largest deviations and bad links; inside of this room */
#ifndef LIMEFILE_PHYSICS_TALLY_H
#define LIMEFILE_PHYSICS_TALLY_H

#include "limephysics.h"
#include "tile.h"

/* What it is judged by. */
struct bounds {
    const uint64_t *extent;
    double bound;
};

/* That of the precision, if none is given. */
double tally_bound(double given, unsigned precision);

/* Adds a tile of `count` sites, the first of which is at `at`, and what came of it: link by
 * link, where that says that something is wrong. */
void tally_tile(struct limefile_physics_tally *, const struct bounds *, const double *tile,
                unsigned count, const uint64_t at[4], const struct tile_sums *);

/* Of a configuration of so many sites, and of the sums over all of them: NaN where they are no
 * numbers. */
void tally_tell(const struct limefile_physics_tally *, double bound,
                const struct limefile_physics_sums *, double sites,
                struct limefile_physics *out);

#endif
