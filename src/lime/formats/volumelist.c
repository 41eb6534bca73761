/* volumelist.c - which site is where: lists of ranks become runs */
#include "volumeset.h"
#include "bytes.h"

#include <errno.h>
#include <stdlib.h>

enum {
    LIST_BLOCK = 16384, /* ranks that are read at a time */
};

static int add(struct limefile_volumes *set, uint64_t rank, uint64_t at, uint32_t volume)
{
    struct run *last = set->runs ? &set->run[set->runs - 1] : NULL;
    if (rank >= set->sites)
        return LIMEFILE_E_VOLUME_LIST;
    if (last && last->volume == volume && last->rank + last->count == rank &&
        last->at + last->count == at && last->count < UINT32_MAX) {
        last->count++;
        return 0;
    }
    if (last && last->volume == volume && last->rank + last->count - 1 == rank)
        return LIMEFILE_E_VOLUME_TWICE; /* a hole would be that all along */
    if (set->runs == set->capacity) {
        size_t more = set->capacity + set->capacity / 2 + 64;
        void *bigger = reallocarray(set->run, more, sizeof *set->run);
        if (!bigger)
            return -ENOMEM;
        set->run = bigger;
        set->capacity = more;
    }
    set->run[set->runs++] = (struct run){rank, at, 1, volume};
    return 0;
}

int volumes_take_list(struct limefile_volumes *set, size_t number)
{
    const struct volume *v = &set->volume[number];
    unsigned bytes = v->sites ? (unsigned)(v->list.bytes / v->sites) : 4;
    unsigned char *raw = malloc(LIST_BLOCK * 8);
    int err = raw ? 0 : -ENOMEM;
    for (uint64_t at = 0, n; !err && at < v->sites; at += n) {
        n = v->sites - at < LIST_BLOCK ? v->sites - at : LIST_BLOCK;
        ssize_t came = limefile_read_full(v->source, raw, (size_t)n * bytes,
                                          v->list.data_offset + at * bytes);
        err = came < 0 ? (int)came : (size_t)came < n * bytes ? LIMEFILE_E_SHRUNK : 0;
        for (uint64_t i = 0; !err && i < n; i++)
            err = add(set, bytes == 4 ? get_be32(raw + 4 * i) : get_be64(raw + 8 * i), at + i,
                      (uint32_t)number);
    }
    free(raw);
    return err;
}

static int by_rank(const void *one, const void *other)
{
    const struct run *a = one, *b = other;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* All sites, each once. */
int volumes_sort(struct limefile_volumes *set)
{
    uint64_t next = 0;
    if (set->runs)
        qsort(set->run, set->runs, sizeof *set->run, by_rank);
    for (size_t i = 0; i < set->runs; i++) {
        if (set->run[i].rank != next)
            return set->run[i].rank < next ? LIMEFILE_E_VOLUME_TWICE
                                           : LIMEFILE_E_VOLUME_MISSING;
        next += set->run[i].count;
    }
    return next == set->sites ? 0 : LIMEFILE_E_VOLUME_MISSING;
}
