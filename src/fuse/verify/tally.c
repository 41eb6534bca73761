/* tally.c - computes the sum of a record from its parts */
#include "tally.h"
#include "range_set.h"

#include <stdlib.h>
#include <string.h>

enum { PARTIAL_MAX = 16 << 20 }; /* most memory for incomplete sites */

/* A site of which only a part is merged. */
struct partial_site {
    struct partial_site *next;
    uint64_t site;
    uint64_t bytes_merged; /* a claim ensures that each byte is merged once */
    char data[];
};

struct limefs_tally {
    struct limefile_field field;
    struct limefs_range_set ranges; /* claimed; too many if programs read at random */
    uint64_t claimed, merged;       /* bytes */
    struct partial_site *partial_sites;
    uint64_t partial_bytes;
    bool is_abandoned;
    struct limefile_checksum sum;
};

struct limefs_tally *limefs_tally_new(const struct limefile_field *field)
{
    struct limefs_tally *tally = calloc(1, sizeof *tally);
    if (tally)
        tally->field = *field;
    return tally;
}

static void free_partial_sites(struct limefs_tally *tally)
{
    while (tally->partial_sites) {
        struct partial_site *partial = tally->partial_sites;
        tally->partial_sites = partial->next;
        free(partial);
    }
    tally->partial_bytes = 0;
}

void limefs_tally_free(struct limefs_tally *tally)
{
    if (!tally)
        return;
    free_partial_sites(tally);
    free(tally);
}

static bool abandon_tally(struct limefs_tally *tally)
{
    tally->is_abandoned = true;
    free_partial_sites(tally);
    return false;
}

bool limefs_tally_claim(struct limefs_tally *tally, uint64_t *from, uint64_t *to)
{
    uint64_t end = tally->field.record.bytes;
    if (*to > end)
        *to = end;
    if (tally->is_abandoned || !limefs_range_set_find_gap(&tally->ranges, from, to))
        return false;
    if (!limefs_range_set_add(&tally->ranges, *from, *to))
        return abandon_tally(tally);
    tally->claimed += *to - *from;
    return true;
}

void limefs_tally_sum(const struct limefs_tally *tally, uint64_t from, const void *data,
                      size_t n, struct limefs_tally_part *out)
{
    uint64_t site_bytes = tally->field.site_bytes, into = from % site_bytes;
    *out = (struct limefs_tally_part){.from = from, .data = data, .n = n};
    out->head = into ? (size_t)(site_bytes - into) : 0;
    if (out->head > n)
        out->head = n;
    out->tail = (size_t)((n - out->head) % site_bytes);
    uint64_t whole = (n - out->head - out->tail) / site_bytes;
    if (whole)
        limefile_field_add_sites(&tally->field, &out->sum, out->data + out->head,
                                 (from + out->head) / site_bytes, whole);
}

/* Finds or creates a partial site. Returns its link in the list; NULL: no memory for it. */
static struct partial_site **get_partial_site(struct limefs_tally *tally, uint64_t site)
{
    struct partial_site **at = &tally->partial_sites;
    while (*at && (*at)->site != site)
        at = &(*at)->next;
    if (*at)
        return at;
    uint64_t bytes = tally->field.site_bytes;
    if (tally->partial_bytes + bytes > PARTIAL_MAX)
        return NULL;
    struct partial_site *partial = malloc(sizeof *partial + (size_t)bytes);
    if (!partial)
        return NULL;
    *partial = (struct partial_site){.next = tally->partial_sites, .site = site};
    tally->partial_bytes += bytes;
    tally->partial_sites = partial;
    return &tally->partial_sites;
}

static void merge_piece(struct limefs_tally *tally, uint64_t from, const char *data, size_t n)
{
    uint64_t bytes = tally->field.site_bytes;
    struct partial_site **at = get_partial_site(tally, from / bytes);
    if (!at) {
        abandon_tally(tally);
        return;
    }
    struct partial_site *partial = *at;
    memcpy(partial->data + from % bytes, data, n);
    partial->bytes_merged += n;
    if (partial->bytes_merged < bytes)
        return;
    limefile_field_add_sites(&tally->field, &tally->sum, partial->data, partial->site, 1);
    *at = partial->next;
    tally->partial_bytes -= bytes;
    free(partial);
}

void limefs_tally_merge(struct limefs_tally *tally, const struct limefs_tally_part *part)
{
    tally->sum.suma ^= part->sum.suma;
    tally->sum.sumb ^= part->sum.sumb;
    if (part->head && !tally->is_abandoned)
        merge_piece(tally, part->from, part->data, part->head);
    if (part->tail && !tally->is_abandoned)
        merge_piece(tally, part->from + part->n - part->tail, part->data + part->n - part->tail,
                    part->tail);
    tally->merged += part->n;
}

uint64_t limefs_tally_unclaimed(const struct limefs_tally *tally)
{
    return tally->field.record.bytes - tally->claimed;
}

bool limefs_tally_is_abandoned(const struct limefs_tally *tally)
{
    return tally->is_abandoned;
}

bool limefs_tally_result(const struct limefs_tally *tally, struct limefile_checksum *sum)
{
    *sum = tally->sum;
    return !tally->is_abandoned && tally->merged == tally->field.record.bytes;
}
