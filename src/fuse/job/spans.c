/* spans.c - a set of byte ranges */
#include "spans.h"

#include <string.h>

bool limefs_spans_add(struct limefs_spans *spans, uint64_t from, uint64_t to)
{
    unsigned first = 0, last;
    if (from >= to)
        return true;
    while (first < spans->count && spans->span[first].to < from)
        first++;
    for (last = first; last < spans->count && spans->span[last].from <= to; last++) {
        if (spans->span[last].from < from)
            from = spans->span[last].from;
        if (spans->span[last].to > to)
            to = spans->span[last].to;
    }
    if (last == first && spans->count == LIMEFS_SPANS_MAX)
        return false;
    /* Ranges [first, last) become one. */
    memmove(&spans->span[first + 1], &spans->span[last],
            (spans->count - last) * sizeof spans->span[0]);
    spans->count = spans->count + 1 - (last - first);
    spans->span[first] = (struct limefs_span){from, to};
    return true;
}

bool limefs_spans_cover(const struct limefs_spans *spans, uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < spans->count; i++)
        if (spans->span[i].from <= from && to <= spans->span[i].to)
            return true;
    return from >= to;
}

bool limefs_spans_gap(const struct limefs_spans *spans, uint64_t *from, uint64_t *to)
{
    for (unsigned i = 0; i < spans->count && spans->span[i].from < *to; i++) {
        const struct limefs_span *span = &spans->span[i];
        if (span->from > *from)
            *to = span->from;
        else if (span->to > *from)
            *from = span->to;
    }
    return *from < *to;
}
