/*
 * tally.h - computes the SciDAC checksum of a record from parts in any order; no I/O.
 *
 * A caller claims a part, so that no byte counts twice; then sums the part's whole sites
 * without a lock; then merges the part. A merge keeps copies of the incomplete sites at the
 * part's ends until their other bytes are merged. All claims and merges need the same lock.
 */
#ifndef LIMEFS_TALLY_H
#define LIMEFS_TALLY_H

#include "limeildg.h"

struct limefs_tally;

/* Creates a tally for a record that is described by the field. NULL: out of memory. */
struct limefs_tally *limefs_tally_new(const struct limefile_field *);
void limefs_tally_free(struct limefs_tally *);

/* Claims the first unclaimed part of bytes [*from, *to) of the record's data and stores its
 * bounds there. False: all are claimed, or the tally is abandoned (too many separate parts). */
bool limefs_tally_claim(struct limefs_tally *, uint64_t *from, uint64_t *to);

/* A part that was summed. `data` is the caller's memory, valid until the merge. */
struct limefs_tally_part {
    uint64_t from;
    const char *data;
    size_t n, head, tail; /* bytes: all; of the incomplete sites at the start and at the end */
    struct limefile_checksum sum;
};

void limefs_tally_sum(const struct limefs_tally *, uint64_t from, const void *data, size_t n,
                      struct limefs_tally_part *out);
void limefs_tally_merge(struct limefs_tally *, const struct limefs_tally_part *);

/* Return the number of unclaimed bytes; and true if the sum cannot be computed any more. */
uint64_t limefs_tally_unclaimed(const struct limefs_tally *);
bool limefs_tally_is_abandoned(const struct limefs_tally *);

/* Gets the sum so far. True if all bytes are merged. */
bool limefs_tally_result(const struct limefs_tally *, struct limefile_checksum *);

#endif
