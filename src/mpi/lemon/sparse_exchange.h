/*
 * sparse_exchange.h - exchange words between ranks that at first know only their receivers, not
 * their senders
 *
 * Each rank has items for some ranks. A pattern is the set of all pairs of a sender and a
 * receiver, with the number of items of each pair. Messages over a pattern carry 1 to 8 64-bit
 * words per item, in either direction, in the order of the items. Initialize a pattern to {0}.
 */
#ifndef LEMON_SPARSE_H
#define LEMON_SPARSE_H

#include "internal.h"

struct lemon_peer {
    int rank;
    int64_t first, items; /* first: number of items of earlier peers */
};

struct lemon_sparse {
    struct lemon_peer *to, *from; /* each rank once; `from` is sorted by rank */
    int64_t to_count, from_count;
    int64_t to_items, from_items;
    MPI_Request *requests;
};

/* Adds a receiver for the next `items` items. Returns 0, or -1 if out of memory. Local. */
int lemon_sparse_add(struct lemon_sparse *, int rank, int64_t items);

/* Completes the pattern when this rank has added all its receivers. ok: false if this rank has
 * failed. Returns false after a failure, possibly on this rank only: the caller must agree on
 * the result before any message. Collective. Call lemon_sparse_close() also after a failure. */
bool lemon_sparse_build(const struct lemon_internal *, struct lemon_sparse *, bool ok);
void lemon_sparse_close(struct lemon_sparse *);

/* Exchange `words` words per item. Forward: senders' `out` (to_items items) goes to receivers'
 * `into` (from_items). Reverse: `out` has from_items items, `into` to_items. Collective. */
void lemon_sparse_forward(struct lemon_internal *, struct lemon_sparse *, int words,
                          const int64_t *out, int64_t *into);
void lemon_sparse_reverse(struct lemon_internal *, struct lemon_sparse *, int words,
                          const int64_t *out, int64_t *into);

#endif
