/* range_set.h - a set of byte ranges [from, to) */
#ifndef LIMEFS_RANGE_SET_H
#define LIMEFS_RANGE_SET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LIMEFS_RANGE_SET_MAX = 256,
};

/* The ranges are in ascending order, with gaps between them. */
struct limefs_range_set {
    unsigned count;
    struct limefs_byte_range {
        uint64_t from, to;
    } range[LIMEFS_RANGE_SET_MAX];
};

/* Adds a range, and joins it with all ranges that it touches. False: the set is full. */
bool limefs_range_set_add(struct limefs_range_set *, uint64_t from, uint64_t to);

bool limefs_range_set_covers(const struct limefs_range_set *, uint64_t from, uint64_t to);

/* Reduces [*from, *to) to its first part outside the set; false: no part is outside. */
bool limefs_range_set_find_gap(const struct limefs_range_set *, uint64_t *from, uint64_t *to);

#endif
