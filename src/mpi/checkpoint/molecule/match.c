/* match.c - two sets of particles */
#define _GNU_SOURCE
#include "match.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b, void *bytes)
{
    return memcmp(a, b, *(const size_t *)bytes);
}

void checkpoint_match_add(struct checkpoint_match *m, int side, uint64_t id)
{
    uint64_t *ids = m->id[side];
    int at = m->ids[side];
    while (at > 0 && ids[at - 1] > id)
        at--;
    if (at == CHECKPOINT_MATCH_IDS)
        return;
    if (m->ids[side] < CHECKPOINT_MATCH_IDS)
        m->ids[side]++;
    memmove(ids + at + 1, ids + at, (size_t)(m->ids[side] - at - 1) * sizeof *ids);
    ids[at] = id;
}

static void add(struct checkpoint_match *m, int side, const unsigned char *particle,
                const LemonField *id)
{
    uint64_t value = 0;
    uint32_t small;
    m->only[side]++;
    if (!id)
        return;
    if (checkpoint_field_bytes(id) == sizeof value) {
        memcpy(&value, particle + id->offset, sizeof value);
    } else {
        memcpy(&small, particle + id->offset, sizeof small);
        value = small;
    }
    checkpoint_match_add(m, side, value);
}

void checkpoint_match(struct checkpoint_particles sets[2], const LemonField *id,
                      struct checkpoint_match *m)
{
    size_t bytes = (size_t)sets[0].bytes;
    int64_t at[2] = {0, 0};
    *m = (struct checkpoint_match){0};
    if (sets[0].count == sets[1].count &&
        (sets[0].count == 0 ||
         memcmp(sets[0].data, sets[1].data, (size_t)sets[0].count * bytes) == 0))
        return;
    for (int i = 0; i < 2; i++)
        if (sets[i].count > 0)
            qsort_r(sets[i].data, (size_t)sets[i].count, bytes, compare, &bytes);
    while (at[0] < sets[0].count || at[1] < sets[1].count) {
        const unsigned char *a = at[0] < sets[0].count ? sets[0].data + at[0] * sets[0].bytes
                                                       : NULL,
                            *b = at[1] < sets[1].count ? sets[1].data + at[1] * sets[1].bytes
                                                       : NULL;
        int order = !a ? 1 : !b ? -1 : memcmp(a, b, bytes);
        if (order < 0)
            add(m, 0, a, id);
        if (order > 0)
            add(m, 1, b, id);
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
}
