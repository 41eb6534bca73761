/* spans.h - which bytes of a range are there; pure */
#ifndef LIMEFS_SPANS_H
#define LIMEFS_SPANS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LIMEFS_SPANS_MAX = 256,
};

/* Ascending, apart from each other. */
struct limefs_spans {
    unsigned count;
    struct limefs_span {
        uint64_t from, to;
    } span[LIMEFS_SPANS_MAX];
};

/* False, and nothing has changed: there is no room for one more. */
bool limefs_spans_add(struct limefs_spans *, uint64_t from, uint64_t to);

bool limefs_spans_cover(const struct limefs_spans *, uint64_t from, uint64_t to);

/* [*from, *to) becomes the first part of it that is not there. Returns false if there is none.
 */
bool limefs_spans_gap(const struct limefs_spans *, uint64_t *from, uint64_t *to);

#endif
