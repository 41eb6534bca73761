/* spans.h - a set of byte ranges; pure */
#ifndef LIMEFS_SPANS_H
#define LIMEFS_SPANS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LIMEFS_SPANS_MAX = 256,
};

/* In ascending order, with gaps between them. */
struct limefs_spans {
    unsigned count;
    struct limefs_span {
        uint64_t from, to;
    } range[LIMEFS_SPANS_MAX];
};

/* Adds a range. Returns false, without any change, if there is no room for one more. */
bool limefs_spans_add(struct limefs_spans *, uint64_t from, uint64_t to);

bool limefs_spans_cover(const struct limefs_spans *, uint64_t from, uint64_t to);

/* Reduces [*from, *to) to its first part that is not in the set. False: all of it is. */
bool limefs_spans_gap(const struct limefs_spans *, uint64_t *from, uint64_t *to);

#endif
