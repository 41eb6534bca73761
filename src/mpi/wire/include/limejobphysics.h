/*
 * limejobphysics.h - the payloads of PHYSICS: which part of a configuration is measured, and
 * what comes of it.
 *
 * request: u32 file, u64 offset (of the first site), u32 x, y, z, t (extents), u32 precision
 * (32 or 64), u64 bound (a double's bits; 0: that of the precision), u64 block, u64 blocks, u64
 * slice, u64 slices (as in limephysics.h)
 *
 * reply: u64 unitarity, u64 determinant (doubles), u64 nonfinite, u64 bad_links, u64 bad_sites;
 * the first bad link: u32 wrong (0: none), u64 site, u32 direction, u32 real, u64 deviation;
 * then of each step u64 space, time, trace (doubles), those of a block one after the other
 */
#ifndef LIMEJOBPHYSICS_H
#define LIMEJOBPHYSICS_H

#include "limejob.h"
#include "limephysics.h"

enum {
    LIMEJOB_STEPS_MAX = 2048, /* of one request: their sums fit into a packet */
};

/* What is asked for, but the file. */
struct limejob_physics {
    uint64_t offset;
    struct limefile_sites sites; /* without what reads them */
    double bound;
    struct limefile_physics_part part;
};

void limejob_put_physics(struct limejob_packet *, const struct limejob_physics *);

/* False: a lattice, a precision or a part that is none, or more steps than there may be. */
bool limejob_get_physics(struct limejob_packet *, struct limejob_physics *);

/* Of the sites that the request names. False: a link that is none of theirs. */
void limejob_put_tally(struct limejob_packet *, const struct limefile_physics_tally *);
bool limejob_get_tally(struct limejob_packet *, const struct limefile_sites *,
                       struct limefile_physics_tally *);

void limejob_put_sums(struct limejob_packet *, const struct limefile_physics_sums *,
                      uint64_t steps);
void limejob_get_sums(struct limejob_packet *, struct limefile_physics_sums *, uint64_t steps);

#endif
