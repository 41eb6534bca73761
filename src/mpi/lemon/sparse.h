/*
 * sparse.h - words between ranks that only the senders know of at first
 *
 * Each rank has items for some others; a pattern is who has how many for whom. Over it go
 * messages of any number of 64-bit words an item, forth and back, in the order of the items.
 */
#ifndef LEMON_SPARSE_H
#define LEMON_SPARSE_H

#include "internal.h"

struct lemon_peer {
    int rank;
    int64_t first, items; /* first: the items of the peers before it */
};

struct lemon_sparse {
    struct lemon_peer *to, *from; /* each rank once; `from` in the order of ranks */
    int64_t to_count, from_count;
    int64_t to_items, from_items;
    MPI_Request *requests;
};

/* Begins a list of whom this rank has items for, in the order of the items. 0, or -1: no
 * memory. Local. */
int lemon_sparse_add(struct lemon_sparse *, int rank, int64_t items);

/* All ranks have added theirs: `good`, if without fault. False: this rank has one, which the
 * caller has to agree on before anything is sent. Collective; to be closed in any case. */
bool lemon_sparse_begin(const struct lemon_internal *, struct lemon_sparse *, bool good);
void lemon_sparse_close(struct lemon_sparse *);

/* From `out`, to_items, to `into`, from_items; and back, the other way round. Collective. */
void lemon_sparse_forth(struct lemon_internal *, struct lemon_sparse *, int words,
                        const int64_t *out, int64_t *into);
void lemon_sparse_back(struct lemon_internal *, struct lemon_sparse *, int words,
                       const int64_t *out, int64_t *into);

#endif
