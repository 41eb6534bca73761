/*
 * tally.h - the sum of a record out of the parts of it that are served, in whatever order they
 * come; no I/O.
 *
 * A part is claimed, so that no byte counts twice; then summed, by its whole sites, which needs
 * no lock; then merged, with the pieces of sites at both ends, which are kept until the rest of
 * the site is there. Claiming and merging are under one lock, the caller's.
 */
#ifndef LIMEFS_TALLY_H
#define LIMEFS_TALLY_H

#include "limeildg.h"

struct limefs_tally;

/* The field is copied. NULL: no memory. */
struct limefs_tally *limefs_tally_new(const struct limefile_field *);
void limefs_tally_free(struct limefs_tally *);

/* The first part of [*from, *to) of the record's data that nobody has claimed is claimed, and
 * becomes *from, *to. False: there is none, or the record is read in so many pieces that no sum
 * will come of it. */
bool limefs_tally_claim(struct limefs_tally *, uint64_t *from, uint64_t *to);

/* A part, summed. */
struct limefs_part {
    uint64_t from;
    const char *data;
    size_t n, head, tail; /* bytes of cut sites at both ends; of one alone: all is head */
    struct limefile_checksum sum;
};

void limefs_tally_sum(const struct limefs_tally *, uint64_t from, const void *data, size_t n,
                      struct limefs_part *out);
void limefs_tally_merge(struct limefs_tally *, const struct limefs_part *);

/* Bytes that nobody has claimed, and whether a sum can still come of it. */
uint64_t limefs_tally_left(const struct limefs_tally *);
bool limefs_tally_is_hopeless(const struct limefs_tally *);

/* True when all has been merged. */
bool limefs_tally_done(const struct limefs_tally *, struct limefile_checksum *);

#endif
