/* checkgauge.c - lime check --physics of a NERSC, MILC or openQCD file: its links, and what its
 * header says of them */
#define _GNU_SOURCE
#include "checkphysics.h"
#include "limegauge.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 128 };

bool gauge_check_is(const struct container *c)
{
    unsigned char head[HEAD_BYTES];
    uint64_t size;
    if (c->fd < 0 || c->source->ops->size(c->source, &size) != 0)
        return false;
    ssize_t n = limefile_read_full(c->source, head, sizeof head, 0);
    return n >= 4 && !limefile_header_is_magic(head, (size_t)n) &&
           limefile_gauge_guess(head, (size_t)n, size) != LIMEFILE_GAUGE_NONE;
}

/* ---- what the header says ---- */

/* The header's words, as its lines have them; MILC's has no figures. */
static int take_stated(const struct limefile_gauge *g, struct physics_result *r)
{
    bool openqcd = g->format == LIMEFILE_GAUGE_OPENQCD;
    if (!g->has_plaquette && !g->has_trace)
        return 0;
    r->stated = calloc(LIMEFILE_PHYSICS_STATED_MAX, sizeof *r->stated);
    if (!r->stated)
        return -ENOMEM;
    r->stated_count = limefile_physics_stated_text(g->text, strlen(g->text), openqcd ? 3 : 1,
                                                   "header", r->stated);
    for (int i = 0; openqcd && i < r->stated_count; i++)
        r->stated[i].tolerance = LIMEFILE_GAUGE_TOLERANCE_OPENQCD;
    return 0;
}

/* ---- its data ---- */

struct telling {
    const struct field_check *check;
    uint64_t site_bytes;
};

static bool tell(void *context, uint64_t sites)
{
    const struct telling *t = context;
    return t->check->progress(t->check->context, sites * t->site_bytes);
}

static uint64_t two_words(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static uint64_t sum_of(const struct limefile_gauge *g, const struct limefile_gauge_sums *sums)
{
    return g->format == LIMEFILE_GAUGE_NERSC ? sums->nersc
                                             : two_words(sums->sum29, sums->sum31);
}

/* why: NULL if the header has something that the data are compared with. */
static void keep_sum(struct sums_check *sums, const struct limefile_gauge *g,
                     const struct limefile_gauge_sums *is, const char *why, bool right)
{
    char sum[64] = "", reason[64] = "";
    if (g->format == LIMEFILE_GAUGE_NERSC)
        snprintf(sum, sizeof sum, ", \"sum\": \"%08" PRIx32 "\"", is->nersc);
    else if (g->format == LIMEFILE_GAUGE_MILC)
        snprintf(sum, sizeof sum,
                 ", \"sum29\": \"%08" PRIx32 "\", \"sum31\": \"%08" PRIx32 "\"", is->sum29,
                 is->sum31);
    if (why)
        snprintf(reason, sizeof reason, ", \"reason\": \"%s\"", why);
    snprintf(sums->whole, sizeof sums->whole, "{\"ordinal\": 0, \"state\": \"%s\"%s%s}",
             why     ? "unverified"
             : right ? "ok"
                     : "bad",
             reason, sum);
}

/* The data cannot be compared with anything. */
static void tell_unverified(const struct gauge_check *out, const struct field_check *check,
                            const struct limefile_gauge *g, const char *why)
{
    const struct limefile_finding finding = {.code = LIMEFILE_D_CHECKSUM_MISSING,
                                             .offset = g->data_offset};
    if (out->summed && !check->quiet)
        answer(check->path, "unverified: %s", why);
    if (out->strict)
        check->report(check->context, &finding);
}

/* --physics reports plaquette and link trace itself. */
static void tell_wrong(const struct gauge_check *out, const struct field_check *check,
                       const struct limefile_gauge *g,
                       const struct limefile_gauge_totals *totals, int code)
{
    char text[LIMEFILE_GAUGE_DIFFERENCE_MAX];
    struct limefile_finding finding = {.offset = g->data_offset};
    if (code == LIMEFILE_E_GAUGE_CHECKSUM) {
        finding.code = LIMEFILE_D_CHECKSUM;
        finding.have = sum_of(g, &totals->source);
        finding.want = sum_of(g, &g->sums);
    } else {
        finding.code =
            code == LIMEFILE_E_GAUGE_TRACE ? LIMEFILE_D_LINK_TRACE : LIMEFILE_D_PLAQUETTE;
        limefile_gauge_difference(g, totals, code, text);
        finding.why = text;
    }
    if (code == LIMEFILE_E_GAUGE_CHECKSUM || !out->physical)
        check->report(check->context, &finding);
}

/* Compares the data with the checksum in the header and, as far as they have been computed,
 * with the plaquette and the link trace there. */
static void compare_header(const struct gauge_check *out, const struct field_check *check,
                           const struct limefile_gauge *g,
                           const struct limefile_gauge_totals *totals)
{
    struct sums_check *sums = out->sums;
    const char *why = limefile_gauge_why_unverified(g);
    int code = limefile_gauge_compare(g, totals);
    sums->verified += !why && !code;
    sums->wrong += !why && code;
    sums->unverified += why != NULL;
    if (why)
        tell_unverified(out, check, g, why);
    else if (code)
        tell_wrong(out, check, g, totals, code);
    keep_sum(sums, g, &totals->source, why, !code);
}

/* A field, as far as findings name it. */
static void describe(const struct limefile_gauge *g, struct limefile_field *f)
{
    memset(f, 0, sizeof *f);
    f->record.data_offset = g->data_offset;
    f->sites = limefile_sites_count(&g->sites);
    f->site_bytes = g->data_bytes / f->sites;
}

static int check_open(struct gauge_check *out, const struct field_check *check,
                      const struct limefile_gauge *g)
{
    struct limefile_field field;
    struct limefile_gauge_totals totals;
    struct physics_result result = {.precision = g->sites.precision};
    struct telling telling = {check, 0};
    const struct limefile_gauge_pass pass = {
        .sites = &g->sites,
        .source = g,
        .progress = tell,
        .context = &telling,
        .threads = check->threads,
        .without_plaquette = !out->physical && !g->has_plaquette,
    };
    describe(g, &field);
    telling.site_bytes = field.site_bytes;
    out->format = limefile_gauge_format_name(g->format);
    int err = limefile_gauge_run(&pass, &totals);
    if (err)
        return err;
    compare_header(out, check, g, &totals);
    if (!out->physical)
        return 0;
    result.is = totals.physics;
    err = take_stated(g, &result);
    return physics_conclude(out->physics, check, &field, &result, err);
}

int gauge_check(struct gauge_check *out, const struct field_check *check)
{
    struct limefile_gauge *g;
    int err = limefile_gauge_open(check->c->source, 0, &g);
    if (err)
        return err;
    err = check_open(out, check, g);
    limefile_gauge_close(g);
    return err;
}
