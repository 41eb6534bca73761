/*
 * pattern.h - words between ranks that only the senders know of at first
 *
 * Each rank has items for some others; a pattern is who has how many for whom. Over it go
 * messages of any number of 64-bit words an item, forth and back, in the order of the items.
 */
#ifndef LEMON_PATTERN_H
#define LEMON_PATTERN_H

#include "internal.h"

struct lemon_peer {
    int rank;
    int64_t first, items; /* first: the items of the peers before it */
};

struct lemon_pattern {
    struct lemon_peer *to, *from; /* each rank once; `from` in the order of ranks */
    int64_t to_count, from_count;
    int64_t to_items, from_items;
    MPI_Request *requests;
};

/* Begins a list of whom this rank has items for, in the order of the items. 0, or -1: no
 * memory. Local. */
int lemon_pattern_add(struct lemon_pattern *, int rank, int64_t items);

/* All ranks have added theirs: `good`, if without fault. Collective, agreed; nothing is to be
 * closed after an error. */
int lemon_pattern_open(struct lemon_internal *, struct lemon_pattern *, bool good);
void lemon_pattern_close(struct lemon_pattern *);

/* From `out`, to_items, to `into`, from_items; and back, the other way round. Collective. */
void lemon_pattern_forth(struct lemon_internal *, struct lemon_pattern *, int words,
                         const int64_t *out, int64_t *into);
void lemon_pattern_back(struct lemon_internal *, struct lemon_pattern *, int words,
                        const int64_t *out, int64_t *into);

#endif
