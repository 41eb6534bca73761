/*
 * cells_check_ids.c - check that no two particles, on any ranks, have the same id
 *
 * The hash of an id selects the rank that checks the id. Each rank sorts the ids it receives.
 */
#include "cells.h"
#include "splitmix64.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int checker_rank(uint64_t id, int ranks)
{
    return (int)(mix64(id) % (uint64_t)ranks);
}

/* Returns this rank's ids, grouped by the rank that checks them, and adds these ranks to the
 * pattern. The caller frees the ids. Returns NULL if out of memory. */
static int64_t *list_ids(const struct lemon_internal *in, const struct limecells *c,
                         const char *particles, int64_t count, struct lemon_sparse *p)
{
    const struct limecells_field *id = limefile_cells_field(c, "id");
    int64_t *ids = malloc((size_t)count * sizeof *ids + 1);
    int64_t *next = calloc((size_t)in->ranks, sizeof *next), first = 0;
    bool ok = ids && next;
    for (int64_t k = 0; ok && k < count; k++)
        next[checker_rank(
            lemon_cells_particle_id(id, particles + k * (int64_t)c->particle_bytes),
            in->ranks)]++;
    for (int r = 0; ok && r < in->ranks; r++) {
        int64_t items = next[r];
        ok = items == 0 || lemon_sparse_add(p, r, items) == 0;
        next[r] = first;
        first += items;
    }
    for (int64_t k = 0; ok && k < count; k++) {
        uint64_t value =
            lemon_cells_particle_id(id, particles + k * (int64_t)c->particle_bytes);
        ids[next[checker_rank(value, in->ranks)]++] = (int64_t)value;
    }
    free(next);
    if (ok)
        return ids;
    free(ids);
    return NULL;
}

/* Radix sort, 16 bits (a digit) per pass. Skips a pass in which all ids have the same digit.
 * Returns false if out of memory. */
static bool sort_ids(int64_t *ids, int64_t n)
{
    enum {
        DIGITS = 1 << 16,
    };
    int64_t *buffer = malloc((size_t)n * sizeof *buffer + 1), *from = ids, *to = buffer;
    int64_t *next = malloc(DIGITS * sizeof *next);
    bool ok = buffer && next;
    for (int shift = 0; ok && shift < 64; shift += 16) {
        memset(next, 0, DIGITS * sizeof *next);
        for (int64_t i = 0; i < n; i++)
            next[(uint64_t)from[i] >> shift & (DIGITS - 1)]++;
        if (n == 0 || next[(uint64_t)from[0] >> shift & (DIGITS - 1)] == n)
            continue;
        for (int64_t digit = 0, first = 0; digit < DIGITS; digit++) {
            int64_t count = next[digit];
            next[digit] = first;
            first += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[next[(uint64_t)from[i] >> shift & (DIGITS - 1)]++] = from[i];
        int64_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (ok && from != ids)
        memcpy(ids, from, (size_t)n * sizeof *ids);
    free(buffer);
    free(next);
    return ok;
}

/* Returns the rank that sent an id. Skips the first `skip` occurrences of the id. */
static int find_holder(const struct lemon_sparse *p, const int64_t *ids, int64_t id, int skip)
{
    for (int64_t i = 0; i < p->from_count; i++)
        for (int64_t k = 0; k < p->from[i].items; k++)
            if (ids[p->from[i].first + k] == id && skip-- == 0)
                return p->from[i].rank;
    return -1;
}

static int check_ids(const struct lemon_sparse *p, const int64_t *ids, char why[CELLS_WHY_MAX])
{
    int64_t n = p->from_items, *sorted = malloc((size_t)n * sizeof *sorted + 1);
    int code = LEMON_SUCCESS;
    if (sorted && n)
        memcpy(sorted, ids, (size_t)n * sizeof *sorted);
    if (!sorted || !sort_ids(sorted, n)) {
        snprintf(why, CELLS_WHY_MAX, "out of memory for %" PRId64 " ids", n);
        code = LEMON_ERR_PARAM;
    }
    for (int64_t i = 1; i < n && code == LEMON_SUCCESS; i++)
        if (sorted[i] == sorted[i - 1]) {
            snprintf(why, CELLS_WHY_MAX, "duplicate id %" PRIu64 " on ranks %d and %d",
                     (uint64_t)sorted[i], find_holder(p, ids, sorted[i], 0),
                     find_holder(p, ids, sorted[i], 1));
            code = LEMON_ERR_PARAM;
        }
    free(sorted);
    return code;
}

int lemon_cells_check_ids(struct lemon_internal *in, const struct limecells *c,
                          const char *particles, int64_t count)
{
    struct lemon_sparse pattern = {0};
    char why[CELLS_WHY_MAX] = "";
    if (!limefile_cells_field(c, "id"))
        return lemon_log(in, LEMON_ERR_PARAM, "LEMON_CELLS_CHECK requires a field 'id'");
    int64_t *out = list_ids(in, c, particles, count, &pattern), *into = NULL;
    if (lemon_sparse_build(in, &pattern, out != NULL))
        into = malloc((size_t)pattern.from_items * sizeof *into + 1);
    int code = lemon_agree(in, into ? LEMON_SUCCESS
                                    : lemon_log(in, LEMON_ERR_PARAM, "out of memory for ids"));
    if (code == LEMON_SUCCESS) {
        lemon_sparse_forward(in, &pattern, 1, out, into);
        code = lemon_agree_and_log(in, check_ids(&pattern, into, why), why);
    }
    lemon_sparse_close(&pattern);
    free(out);
    free(into);
    return code;
}
