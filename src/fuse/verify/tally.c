/* tally.c - computes the sum of a record from its parts */
#include "tally.h"
#include "spans.h"

#include <stdlib.h>
#include <string.h>

enum {
    CUT_BYTES = 16 << 20, /* most memory for incomplete sites */
};

/* A site of which only a part is merged. */
struct cut {
    struct cut *next;
    uint64_t site;
    uint64_t have; /* bytes; a claim ensures that each is merged once */
    char data[];
};

struct limefs_tally {
    struct limefile_field field;
    struct limefs_spans spans; /* claimed; too many show that programs read at random */
    uint64_t claimed, merged;  /* bytes */
    struct cut *cuts;
    uint64_t cut_bytes;
    bool hopeless;
    struct limefile_checksum sum;
};

struct limefs_tally *limefs_tally_new(const struct limefile_field *field)
{
    struct limefs_tally *tally = calloc(1, sizeof *tally);
    if (tally)
        tally->field = *field;
    return tally;
}

static void drop_cuts(struct limefs_tally *tally)
{
    while (tally->cuts) {
        struct cut *cut = tally->cuts;
        tally->cuts = cut->next;
        free(cut);
    }
    tally->cut_bytes = 0;
}

void limefs_tally_free(struct limefs_tally *tally)
{
    if (!tally)
        return;
    drop_cuts(tally);
    free(tally);
}

static bool give_up(struct limefs_tally *tally)
{
    tally->hopeless = true;
    drop_cuts(tally);
    return false;
}

/* ---- claims ---- */

bool limefs_tally_claim(struct limefs_tally *tally, uint64_t *from, uint64_t *to)
{
    uint64_t end = tally->field.record.bytes;
    if (*to > end)
        *to = end;
    if (tally->hopeless || !limefs_spans_gap(&tally->spans, from, to))
        return false;
    if (!limefs_spans_add(&tally->spans, *from, *to))
        return give_up(tally);
    tally->claimed += *to - *from;
    return true;
}

/* ---- sums ---- */

void limefs_tally_sum(const struct limefs_tally *tally, uint64_t from, const void *data,
                      size_t n, struct limefs_part *out)
{
    uint64_t site_bytes = tally->field.site_bytes, into = from % site_bytes;
    *out = (struct limefs_part){.from = from, .data = data, .n = n};
    out->head = into ? (size_t)(site_bytes - into) : 0;
    if (out->head > n)
        out->head = n;
    out->tail = (size_t)((n - out->head) % site_bytes);
    uint64_t whole = (n - out->head - out->tail) / site_bytes;
    if (whole)
        limefile_field_add(&tally->field, &out->sum, out->data + out->head,
                           (from + out->head) / site_bytes, whole);
}

static struct cut **cut_of(struct limefs_tally *tally, uint64_t site)
{
    struct cut **at = &tally->cuts;
    while (*at && (*at)->site != site)
        at = &(*at)->next;
    if (*at)
        return at;
    uint64_t bytes = tally->field.site_bytes;
    struct cut *cut =
        tally->cut_bytes + bytes > CUT_BYTES ? NULL : malloc(sizeof *cut + (size_t)bytes);
    if (!cut)
        return NULL;
    *cut = (struct cut){.next = tally->cuts, .site = site};
    tally->cut_bytes += bytes;
    tally->cuts = cut;
    return &tally->cuts;
}

/* Merges a piece of one site. */
static void add_piece(struct limefs_tally *tally, uint64_t from, const char *data, size_t n)
{
    uint64_t bytes = tally->field.site_bytes;
    struct cut **at = cut_of(tally, from / bytes);
    if (!at) {
        give_up(tally);
        return;
    }
    struct cut *cut = *at;
    memcpy(cut->data + from % bytes, data, n);
    cut->have += n;
    if (cut->have < bytes)
        return;
    limefile_field_add(&tally->field, &tally->sum, cut->data, cut->site, 1);
    *at = cut->next;
    tally->cut_bytes -= bytes;
    free(cut);
}

void limefs_tally_merge(struct limefs_tally *tally, const struct limefs_part *part)
{
    tally->sum.suma ^= part->sum.suma;
    tally->sum.sumb ^= part->sum.sumb;
    if (part->head && !tally->hopeless)
        add_piece(tally, part->from, part->data, part->head);
    if (part->tail && !tally->hopeless)
        add_piece(tally, part->from + part->n - part->tail, part->data + part->n - part->tail,
                  part->tail);
    tally->merged += part->n;
}

uint64_t limefs_tally_left(const struct limefs_tally *tally)
{
    return tally->field.record.bytes - tally->claimed;
}

bool limefs_tally_is_hopeless(const struct limefs_tally *tally)
{
    return tally->hopeless;
}

bool limefs_tally_done(const struct limefs_tally *tally, struct limefile_checksum *sum)
{
    *sum = tally->sum;
    return !tally->hopeless && tally->merged == tally->field.record.bytes;
}
