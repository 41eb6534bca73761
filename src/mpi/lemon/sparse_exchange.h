/*
 * sparse_exchange.h - exchange words between ranks if at first only the senders know the
 * receivers
 *
 * Each rank has items for some other ranks; a pattern is the set of these pairs with their
 * numbers of items. Messages over a pattern carry 1 to 8 64-bit words per item, in either
 * direction, in the order of the items. A pattern starts as {0}.
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

/* Adds a receiver, in the order of the items. Returns 0, or -1 if out of memory. Local. */
int lemon_sparse_add(struct lemon_sparse *, int rank, int64_t items);

/* Completes the pattern after all ranks have called lemon_sparse_add(); ok: false if this
 * rank has failed. Returns false after a failure, possibly of this rank only: the caller must
 * agree on it before any message. Collective; call lemon_sparse_close() in any case. */
bool lemon_sparse_build(const struct lemon_internal *, struct lemon_sparse *, bool ok);
void lemon_sparse_close(struct lemon_sparse *);

/* Send `words` words per item: forward from `out` (to_items) into `into` (from_items), reverse
 * from `out` (from_items) into `into` (to_items). Collective. */
void lemon_sparse_forward(struct lemon_internal *, struct lemon_sparse *, int words,
                          const int64_t *out, int64_t *into);
void lemon_sparse_reverse(struct lemon_internal *, struct lemon_sparse *, int words,
                          const int64_t *out, int64_t *into);

#endif
