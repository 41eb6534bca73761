/*
 * sums.h - SciDAC checksums of parts of a lattice, site by site; pure, no MPI.
 *
 * Each site counts by its rank, which is its place in the record; so the sums of disjoint
 * parts, whoever computes them and in whatever order, combine by XOR.
 */
#ifndef LEMON_SUMS_H
#define LEMON_SUMS_H

#include "box.h"
#include "limefile.h"

/* Adds those sites of a box that lie wholly in bytes [from, to) of its memory. `first` is the
 * rank of the lattice's first site. */
void lemon_sums_add(struct limefile_checksum *, const struct lemon_box *, uint64_t first,
                    const char *memory, int64_t from, int64_t to);

/* Bytes in the order of the file, in pieces of any length; whole sites in the end. */
struct lemon_sums_stream {
    struct limefile_checksum sum;
    int64_t site_bytes; /* more than 0 */
    uint64_t rank;      /* of the site that comes, or is begun */
    int64_t inside;     /* bytes of it that have come */
    uint32_t crc;       /* of these */
};
void lemon_sums_feed(struct lemon_sums_stream *, const char *data, int64_t n);

#endif
