/* compare.c - whether the data are what their header says */
#include "gauge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool agrees(double is, double said, double tolerance)
{
    return fabs(is - said) <= tolerance;
}

const struct limefile_physics_stated *limefile_gauge_disagreement(
    const struct limefile_gauge *g, const struct limefile_gauge_totals *totals)
{
    for (int i = 0; i < g->kept->stated_count; i++) {
        const struct limefile_physics_stated *s = &g->kept->stated[i];
        double digit = fmin(s->digit, LIMEFILE_PHYSICS_DIGIT_MAX);
        if (!s->number || !agrees(limefile_physics_value(&totals->physics, s->quantity),
                                  s->value, fmax(LIMEFILE_GAUGE_TOLERANCE, digit)))
            return s;
    }
    return NULL;
}

int limefile_gauge_compare(const struct limefile_gauge *g,
                           const struct limefile_gauge_totals *totals)
{
    const struct limefile_gauge_sums *is = &totals->source, *said = &g->sums;
    double tolerance = g->format == LIMEFILE_GAUGE_OPENQCD ? LIMEFILE_GAUGE_TOLERANCE_OPENQCD
                                                           : LIMEFILE_GAUGE_TOLERANCE;
    if (g->has_checksum &&
        (is->nersc != said->nersc || is->sum29 != said->sum29 || is->sum31 != said->sum31 ||
         is->scidac.suma != said->scidac.suma || is->scidac.sumb != said->scidac.sumb))
        return LIMEFILE_E_GAUGE_CHECKSUM;
    if (g->format == LIMEFILE_GAUGE_ILDG) {
        const struct limefile_physics_stated *s = limefile_gauge_disagreement(g, totals);
        return !s                                      ? 0
               : s->quantity == LIMEFILE_PHYSICS_TRACE ? LIMEFILE_E_GAUGE_TRACE
                                                       : LIMEFILE_E_GAUGE_PLAQUETTE;
    }
    if (g->has_plaquette && !agrees(totals->physics.plaquette, g->plaquette, tolerance))
        return LIMEFILE_E_GAUGE_PLAQUETTE;
    if (g->has_trace && !agrees(totals->physics.trace, g->link_trace, tolerance))
        return LIMEFILE_E_GAUGE_TRACE;
    return 0;
}

static void checksum_difference(const struct limefile_gauge *g,
                                const struct limefile_gauge_sums *is,
                                char text[LIMEFILE_GAUGE_DIFFERENCE_MAX])
{
    static const char two[] = "checksum %08" PRIx32 " %08" PRIx32 ", not %08" PRIx32
                              " %08" PRIx32 " as in the header";
    const struct limefile_gauge_sums *stated = &g->sums;
    size_t cap = LIMEFILE_GAUGE_DIFFERENCE_MAX;
    if (g->format == LIMEFILE_GAUGE_NERSC)
        snprintf(text, cap, "checksum %08" PRIx32 ", not %08" PRIx32 " as in the header",
                 is->nersc, stated->nersc);
    else if (g->format == LIMEFILE_GAUGE_MILC)
        snprintf(text, cap, two, is->sum29, is->sum31, stated->sum29, stated->sum31);
    else
        snprintf(text, cap, two, is->scidac.suma, is->scidac.sumb, stated->scidac.suma,
                 stated->scidac.sumb);
}

int limefile_gauge_stated(const struct limefile_gauge *g,
                          struct limefile_physics_stated out[LIMEFILE_PHYSICS_STATED_MAX])
{
    bool openqcd = g->format == LIMEFILE_GAUGE_OPENQCD;
    if ((!g->has_plaquette && !g->has_trace) || g->format == LIMEFILE_GAUGE_ILDG)
        return 0;
    int count =
        limefile_physics_stated_text(g->text, strlen(g->text), openqcd ? 3 : 1, "header", out);
    for (int i = 0; openqcd && i < count; i++)
        out[i].tolerance = LIMEFILE_GAUGE_TOLERANCE_OPENQCD;
    return count;
}

bool limefile_gauge_agrees(const struct limefile_gauge *g,
                           const struct limefile_gauge_totals *totals,
                           char text[LIMEFILE_GAUGE_DIFFERENCE_MAX])
{
    struct limefile_physics_stated stated[LIMEFILE_PHYSICS_STATED_MAX];
    int count = limefile_gauge_stated(g, stated);
    *text = '\0';
    if (limefile_gauge_compare(g, totals) == LIMEFILE_E_GAUGE_CHECKSUM) {
        checksum_difference(g, &totals->source, text);
        return false;
    }
    for (int i = 0; i < count; i++)
        if (!limefile_physics_agrees(&totals->physics, &stated[i], g->sites.precision)) {
            snprintf(text, LIMEFILE_GAUGE_DIFFERENCE_MAX, "%s %.12g, not %s as in the header",
                     limefile_physics_quantity_name(stated[i].quantity),
                     limefile_physics_value(&totals->physics, stated[i].quantity),
                     stated[i].text);
            return false;
        }
    return true;
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
    int err = limefile_gauge_run(&pass, out);
    return err ? err : limefile_gauge_compare(g, out);
}
