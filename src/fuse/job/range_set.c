/* range_set.c - add ranges to a set of byte ranges, and compare ranges with the set */
#include "range_set.h"

#include <string.h>

bool limefs_range_set_add(struct limefs_range_set *set, uint64_t from, uint64_t to)
{
    unsigned first = 0, last;
    if (from >= to)
        return true;
    while (first < set->count && set->range[first].to < from)
        first++;
    for (last = first; last < set->count && set->range[last].from <= to; last++) {
        if (set->range[last].from < from)
            from = set->range[last].from;
        if (set->range[last].to > to)
            to = set->range[last].to;
    }
    if (last == first && set->count == LIMEFS_RANGE_SET_MAX)
        return false;
    memmove(&set->range[first + 1], &set->range[last],
            (set->count - last) * sizeof set->range[0]);
    set->count = set->count + 1 - (last - first);
    set->range[first] = (struct limefs_byte_range){from, to};
    return true;
}

bool limefs_range_set_covers(const struct limefs_range_set *set, uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->range[i].from <= from && to <= set->range[i].to)
            return true;
    return from >= to;
}

bool limefs_range_set_find_gap(const struct limefs_range_set *set, uint64_t *from, uint64_t *to)
{
    for (unsigned i = 0; i < set->count && set->range[i].from < *to; i++) {
        const struct limefs_byte_range *range = &set->range[i];
        if (range->from > *from)
            *to = range->from;
        else if (range->to > *from)
            *from = range->to;
    }
    return *from < *to;
}
