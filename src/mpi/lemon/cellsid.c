/*
 * cellsid.c - whether an id is there twice
 *
 * Each id goes to one rank, by its hash, which looks each up in a table of those before it.
 */
#include "cells.h"
#include "mix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int judge_of(uint64_t id, int ranks)
{
    return (int)(mix64(id) % (uint64_t)ranks);
}

/* The ids of this rank, those for each rank together. */
static int64_t *list_ids(const struct lemon_internal *in, const struct limecells *c,
                         const char *particles, int64_t count, struct lemon_sparse *p)
{
    const struct limecells_field *id = limefile_cells_find(c, "id");
    int64_t *word = malloc((size_t)count * sizeof *word + 1);
    int64_t *next = calloc((size_t)in->ranks, sizeof *next), first = 0;
    bool good = word && next;
    for (int64_t k = 0; good && k < count; k++)
        next[judge_of(lemon_cells_id(id, particles + k * (int64_t)c->particle_bytes),
                      in->ranks)]++;
    for (int r = 0; good && r < in->ranks; r++) {
        int64_t items = next[r];
        good = items == 0 || lemon_sparse_add(p, r, items) == 0;
        next[r] = first;
        first += items;
    }
    for (int64_t k = 0; good && k < count; k++) {
        uint64_t value = lemon_cells_id(id, particles + k * (int64_t)c->particle_bytes);
        word[next[judge_of(value, in->ranks)]++] = (int64_t)value;
    }
    free(next);
    if (good)
        return word;
    free(word);
    return NULL;
}

/* The rank that item i of the words came from. */
static int holder(const struct lemon_sparse *p, int64_t i)
{
    int64_t source = 0;
    while (i >= p->from[source].first + p->from[source].items)
        source++;
    return p->from[source].rank;
}

/* table: which item, from 1 on, is in a place; an id's is found by its hash, or behind it. */
static int judge(const struct lemon_sparse *p, const int64_t *word, char why[CELLS_WHY_MAX])
{
    int64_t n = p->from_items, places = 2 * n + 1,
            *table = calloc((size_t)places, sizeof *table);
    int code = table ? LEMON_SUCCESS : LEMON_ERR_PARAM;
    if (!table)
        snprintf(why, CELLS_WHY_MAX, "out of memory for %" PRId64 " ids", n);
    for (int64_t i = 0; i < n && code == LEMON_SUCCESS; i++) {
        int64_t at = (int64_t)(mix64((uint64_t)word[i] + MIX64_STEP) % (uint64_t)places);
        while (table[at] && word[table[at] - 1] != word[i])
            at = at + 1 < places ? at + 1 : 0;
        if (table[at]) {
            snprintf(why, CELLS_WHY_MAX, "id %" PRIu64 " is there twice: on ranks %d and %d",
                     (uint64_t)word[i], holder(p, table[at] - 1), holder(p, i));
            code = LEMON_ERR_PARAM;
        }
        table[at] = i + 1;
    }
    free(table);
    return code;
}

int lemon_cells_check_ids(struct lemon_internal *in, const struct limecells *c,
                          const char *particles, int64_t count)
{
    struct lemon_sparse pattern = {0};
    char why[CELLS_WHY_MAX] = "";
    if (!limefile_cells_find(c, "id"))
        return lemon_say(in, LEMON_ERR_PARAM, "particles without an id cannot be checked");
    int64_t *out = list_ids(in, c, particles, count, &pattern), *into = NULL;
    if (lemon_sparse_begin(in, &pattern, out != NULL))
        into = malloc((size_t)pattern.from_items * sizeof *into + 1);
    int code = lemon_agree(in, into ? LEMON_SUCCESS
                                    : lemon_say(in, LEMON_ERR_PARAM, "no memory for ids"));
    if (code == LEMON_SUCCESS) {
        lemon_sparse_forth(in, &pattern, 1, out, into);
        code = lemon_tell(in, judge(&pattern, into, why), why);
    }
    lemon_sparse_close(&pattern);
    free(out);
    free(into);
    return code;
}
