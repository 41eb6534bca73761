/*
 * compute.h - data in another order, precision or byte order; inside of src/lime/faces
 *
 * Sites with even x+y+z+t before odd ones, both as they follow each other in the record. Of two
 * neighbours, sites 2k and 2k + 1, one is even and one odd as long as the number of sites up to
 * some dimension is even: so the k-th even site is one of them, and which one is told by the
 * coordinates above that dimension (evenodd.c).
 */
#ifndef LIMEFILE_COMPUTE_H
#define LIMEFILE_COMPUTE_H

#include "layout.h"
#include "limegauge.h"

/* ---- evenodd.c ---- */

struct face_evenodd {
    uint64_t sites, evens;
    uint64_t pairs;  /* of sites in a block, inside of which parity alternates */
    unsigned origin; /* parity of the first site */
    unsigned above;  /* dimensions above a block, and their extents from below */
    uint64_t extent[LIMEFILE_DIMS_MAX];
};

void face_evenodd_init(struct face_evenodd *, const struct face_layout *);

/* Where the k-th site of that order stands in the record; *run: how many sites, with it, follow
 * each other by two there (perhaps fewer: not beyond the half of the order). */
uint64_t face_evenodd_site(const struct face_evenodd *, uint64_t k, uint64_t *run);

/* ---- compute.c ---- */

struct face_compute {
    unsigned from, to;   /* bytes of a number */
    uint64_t site_bytes; /* in the record, */
    uint64_t out_bytes;  /* and computed */
    uint64_t bytes;      /* of all that is computed */
    limefile_reals_fn *kernel;
    bool even_odd;
    struct face_evenodd order;
};

/* LIMEFILE_E_STATE if that is longer than a file can be. */
int face_compute_init(struct face_compute *, const struct face_layout *,
                      const struct limefile_facename *);

/* All n bytes from `offset` of what is computed, which are there. 0, -errno or
 * LIMEFILE_E_SHRUNK. */
int face_compute_read(const struct face_compute *, unsigned char *out, size_t n,
                      uint64_t offset, limefile_face_lend_fn *lend, void *context);

#endif
