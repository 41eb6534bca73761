/* compare.c - whether the data are what their header says */
#include "gauge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- checksum ---- */

static bool has_right_checksum(const struct limefile_gauge *g,
                               const struct limefile_gauge_sums *is)
{
    const struct limefile_gauge_sums *stated = &g->sums;
    return !g->has_checksum ||
           (is->nersc == stated->nersc && is->sum29 == stated->sum29 &&
            is->sum31 == stated->sum31 && is->scidac.suma == stated->scidac.suma &&
            is->scidac.sumb == stated->scidac.sumb);
}

static void checksum_difference(const struct limefile_gauge *g,
                                const struct limefile_gauge_sums *is,
                                char text[LIMEFILE_GAUGE_DIFFERENCE_MAX])
{
    static const char two[] =
        "checksum %08" PRIx32 " %08" PRIx32 ", not %08" PRIx32 " %08" PRIx32 " as in the %s";
    const struct limefile_gauge_sums *stated = &g->sums;
    size_t cap = LIMEFILE_GAUGE_DIFFERENCE_MAX;
    if (g->format == LIMEFILE_GAUGE_NERSC)
        snprintf(text, cap, "checksum %08" PRIx32 ", not %08" PRIx32 " as in the header",
                 is->nersc, stated->nersc);
    else if (g->format == LIMEFILE_GAUGE_MILC)
        snprintf(text, cap, two, is->sum29, is->sum31, stated->sum29, stated->sum31, "header");
    else
        snprintf(text, cap, two, is->scidac.suma, is->scidac.sumb, stated->scidac.suma,
                 stated->scidac.sumb, "scidac-checksum");
}

/* ---- plaquette and link trace ---- */

int limefile_gauge_stated(const struct limefile_gauge *g,
                          struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX])
{
    bool openqcd = g->format == LIMEFILE_GAUGE_OPENQCD;
    if (g->format == LIMEFILE_GAUGE_ILDG) {
        memcpy(out, g->kept->stated, sizeof g->kept->stated);
        return g->kept->stated_count;
    }
    if (!g->has_plaquette && !g->has_trace)
        return 0;
    int count =
        limefile_physics_stated_text(g->text, strlen(g->text), openqcd ? 3 : 1, "header", out);
    for (int i = 0; openqcd && i < count; i++)
        out[i].tolerance = LIMEFILE_PHYSICS_TOLERANCE_OPENQCD;
    return count;
}

int limefile_gauge_compare(const struct limefile_gauge *g,
                           const struct limefile_gauge_totals *totals,
                           char text[LIMEFILE_GAUGE_DIFFERENCE_MAX])
{
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX];
    int count = limefile_gauge_stated(g, stated);
    *text = '\0';
    if (!has_right_checksum(g, &totals->source)) {
        checksum_difference(g, &totals->source, text);
        return LIMEFILE_E_GAUGE_CHECKSUM;
    }
    for (int i = 0; i < count; i++) {
        const struct limefile_physics_stated *s = &stated[i];
        if (limefile_physics_agrees(&totals->physics, s, g->sites.precision))
            continue;
        snprintf(text, LIMEFILE_GAUGE_DIFFERENCE_MAX, "%s %.12g, not %s as in the %s",
                 limefile_physics_quantity_name(s->quantity),
                 limefile_physics_value(&totals->physics, s->quantity),
                 *s->text ? s->text : "empty", s->where);
        return s->quantity == LIMEFILE_PHYSICS_TRACE ? LIMEFILE_E_GAUGE_TRACE
                                                     : LIMEFILE_E_GAUGE_PLAQUETTE;
    }
    return 0;
}

const char *limefile_gauge_why_unverified(const struct limefile_gauge *g)
{
    if (g->has_checksum || g->has_plaquette || g->has_trace)
        return NULL;
    return "the header has no usable sum";
}

int limefile_gauge_verify(const struct limefile_gauge *g, unsigned threads,
                          bool (*progress)(void *, uint64_t), void *context,
                          struct limefile_gauge_totals *out)
{
    struct limefile_gauge_pass pass = {
        .sites = &g->sites,
        .source = g,
        .progress = progress,
        .context = context,
        .threads = threads,
        .without_plaquette = !g->has_plaquette,
    };
    char text[LIMEFILE_GAUGE_DIFFERENCE_MAX];
    int err = limefile_gauge_run(&pass, out);
    return err ? err : limefile_gauge_compare(g, out, text);
}
