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

static void keep_sum(struct sums_check *sums, const struct limefile_gauge *g,
                     const struct limefile_gauge_sums *is, bool right)
{
    char sum[64] = "";
    if (g->format == LIMEFILE_GAUGE_NERSC)
        snprintf(sum, sizeof sum, ", \"sum\": \"%08" PRIx32 "\"", is->nersc);
    else if (g->format == LIMEFILE_GAUGE_MILC)
        snprintf(sum, sizeof sum,
                 ", \"sum29\": \"%08" PRIx32 "\", \"sum31\": \"%08" PRIx32 "\"", is->sum29,
                 is->sum31);
    snprintf(sums->whole, sizeof sums->whole, "{\"ordinal\": 0, \"state\": \"%s\"%s%s}",
             !g->has_checksum ? "unverified"
             : right          ? "ok"
                              : "bad",
             g->has_checksum ? "" : ", \"reason\": \"no checksum\"", sum);
}

/* That of data which are not compared with one. */
static void tell_unverified(const struct gauge_check *out, const struct field_check *check,
                            const struct limefile_gauge *g)
{
    const struct limefile_finding finding = {.code = LIMEFILE_D_CHECKSUM_MISSING,
                                             .offset = g->data_offset};
    if (out->summed && !check->quiet)
        answer(check->path, "unverified: no checksum");
    if (out->strict)
        check->report(check->context, &finding);
}

static void compare_sum(const struct gauge_check *out, const struct field_check *check,
                        const struct limefile_gauge *g, const struct limefile_gauge_sums *is)
{
    struct sums_check *sums = out->sums;
    struct limefile_finding finding = {
        .code = LIMEFILE_D_CHECKSUM,
        .offset = g->data_offset,
        .have = sum_of(g, is),
        .want = sum_of(g, &g->sums),
    };
    bool right = finding.have == finding.want;
    sums->verified += g->has_checksum && right;
    sums->wrong += g->has_checksum && !right;
    sums->unverified += !g->has_checksum;
    if (g->has_checksum && !right)
        check->report(check->context, &finding);
    else if (!g->has_checksum)
        tell_unverified(out, check, g);
    keep_sum(sums, g, is, right);
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
        .without_plaquette = !out->physical,
    };
    describe(g, &field);
    telling.site_bytes = field.site_bytes;
    out->format = limefile_gauge_format_name(g->format);
    int err = limefile_gauge_run(&pass, &totals);
    if (err)
        return err;
    compare_sum(out, check, g, &totals.source);
    if (!out->physical)
        return 0;
    result.is = totals.physics;
    err = take_stated(g, &result);
    return physics_conclude(out->physics, check, &field, &result, err);
}

int gauge_check(struct gauge_check *out, const struct field_check *check)
{
    struct limefile_gauge *g;
    char why[LIMEFILE_GAUGE_WHY_MAX];
    int err = limefile_gauge_open_explained(check->c->source, 0, &g, why);
    if (err && *why)
        message(check->path, "%s", why);
    if (err)
        return err;
    err = check_open(out, check, g);
    limefile_gauge_close(g);
    return err;
}
