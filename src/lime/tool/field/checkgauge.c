/* checkgauge.c - lime check --data and --physics of a NERSC, MILC or openQCD file: its data,
 * and the checksum, plaquette and link trace in its header */
#define _GNU_SOURCE
#include "checkphysics.h"
#include "limegauge.h"
#include "tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 256 };

const char *gauge_check_format(const struct container *c)
{
    unsigned char head[HEAD_BYTES];
    uint64_t size;
    if (c->fd < 0 || c->source->ops->size(c->source, &size) != 0)
        return NULL;
    ssize_t n = limefile_read_full(c->source, head, sizeof head, 0);
    if (n < 4 || limefile_header_is_magic(head, (size_t)n))
        return NULL;
    enum limefile_gauge_format format = limefile_gauge_guess(head, (size_t)n, size);
    return format == LIMEFILE_GAUGE_NONE ? NULL : limefile_gauge_format_name(format);
}

/* ---- what the header says ---- */

static int take_stated(const struct limefile_gauge *g, struct physics_result *r)
{
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX];
    int count = limefile_gauge_stated(g, stated);
    if (count == 0)
        return 0;
    r->stated = calloc((size_t)count, sizeof *r->stated);
    if (!r->stated)
        return -ENOMEM;
    memcpy(r->stated, stated, (size_t)count * sizeof *stated);
    r->stated_count = count;
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
             !right ? "bad"
             : why  ? "unverified"
                    : "good",
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

/* `agree`: the plaquette and the link trace in the header are those of the data. */
static void compare_sum(const struct gauge_check *out, const struct field_check *check,
                        const struct limefile_gauge *g, const struct limefile_gauge_sums *is,
                        bool agree)
{
    struct sums_check *sums = out->sums;
    struct limefile_finding finding = {
        .code = LIMEFILE_D_CHECKSUM,
        .offset = g->data_offset,
        .have = sum_of(g, is),
        .want = sum_of(g, &g->sums),
    };
    const char *why = limefile_gauge_why_unverified(g);
    bool same = !g->has_checksum || finding.have == finding.want;
    sums->verified += !why && same && agree;
    sums->wrong += !same || !agree;
    sums->unverified += why != NULL;
    if (!same)
        check->report(check->context, &finding);
    if (why)
        tell_unverified(out, check, g, why);
    keep_sum(sums, g, is, why, same && agree);
}

/* A field, as far as findings name it. */
static void describe(const struct limefile_gauge *g, struct limefile_field *f)
{
    memset(f, 0, sizeof *f);
    f->record.data_offset = g->data_offset;
    f->sites = limefile_sites_count(&g->sites);
    f->site_bytes = g->data_bytes / f->sites;
}

static bool all_agree(const struct physics_result *result)
{
    for (int i = 0; i < result->stated_count; i++)
        if (!limefile_physics_agrees(&result->is, &result->stated[i], result->precision))
            return false;
    return true;
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
    int err = limefile_gauge_run(&pass, &totals);
    if (err)
        return err;
    result.is = totals.physics;
    err = take_stated(g, &result);
    if (err)
        return err;
    compare_sum(out, check, g, &totals.source, all_agree(&result));
    if (out->physical)
        return physics_conclude(out->physics, check, &field, &result, 0);
    physics_report_stated(check, &field, &result);
    free(result.stated);
    return 0;
}

int gauge_check_damage(const char *path, char *reason, size_t cap)
{
    struct container c;
    struct limefile_gauge *g;
    char why[LIMEFILE_GAUGE_WHY_MAX];
    if (container_open_source(&c, path) != 0)
        return 0;
    int err = 0;
    if (gauge_check_format(&c)) {
        err = limefile_gauge_open_explained(c.source, 0, &g, why);
        if (!err)
            limefile_gauge_close(g);
    }
    container_close_source(&c);
    if (!limefile_gauge_is_damage(err))
        return 0;
    snprintf(reason, cap, "%s%s%s", limefile_strerror(err), *why ? ": " : "", why);
    return err;
}

/* The file is in the format, but of a kind that cannot be read here. */
static bool is_unknown(int err)
{
    return err == LIMEFILE_E_GAUGE_FORM || err == LIMEFILE_E_GAUGE_ORDER ||
           err == LIMEFILE_E_GAUGE_NONE || err == LIMEFILE_E_GAUGE_UNKNOWN;
}

int gauge_check(struct gauge_check *out, const struct field_check *check)
{
    struct limefile_gauge *g;
    char why[LIMEFILE_GAUGE_WHY_MAX];
    int err = limefile_gauge_open_explained(check->c->source, 0, &g, why);
    const char *reason = *why ? why : NULL;
    if (!err) {
        err = check_open(out, check, g);
        limefile_gauge_close(g);
    }
    if (limefile_gauge_is_damage(err)) {
        check->report(check->context, &(struct limefile_finding){.code = err, .why = reason});
    } else if (is_unknown(err)) {
        out->unexamined = true;
        if (!check->quiet)
            answer(check->path, "unverified: %s", reason ? reason : limefile_strerror(err));
    }
    return limefile_gauge_is_damage(err) || is_unknown(err) ? 0 : err;
}
