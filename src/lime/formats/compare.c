/* compare.c - whether the data are what their header says */
#include "limegauge.h"

#include <math.h>

static bool agrees(double is, double said, double tolerance)
{
    return fabs(is - said) <= tolerance;
}

int limefile_gauge_compare(const struct limefile_gauge *g,
                           const struct limefile_gauge_totals *totals)
{
    const struct limefile_gauge_sums *is = &totals->source, *said = &g->sums;
    double tolerance = g->format == LIMEFILE_GAUGE_OPENQCD ? LIMEFILE_GAUGE_TOLERANCE_OPENQCD
                                                           : LIMEFILE_GAUGE_TOLERANCE;
    double digit = fmin(g->plaquette_digit, LIMEFILE_PHYSICS_DIGIT_MAX);
    if (g->has_checksum &&
        (is->nersc != said->nersc || is->sum29 != said->sum29 || is->sum31 != said->sum31 ||
         is->scidac.suma != said->scidac.suma || is->scidac.sumb != said->scidac.sumb))
        return LIMEFILE_E_GAUGE_CHECKSUM;
    if (g->has_plaquette &&
        !agrees(totals->physics.plaquette, g->plaquette, fmax(tolerance, digit)))
        return LIMEFILE_E_GAUGE_PLAQUETTE;
    if (g->has_trace && !agrees(totals->physics.trace, g->link_trace, tolerance))
        return LIMEFILE_E_GAUGE_TRACE;
    return 0;
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
