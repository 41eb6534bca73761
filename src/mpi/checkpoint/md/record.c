/* record.c - what a run has to know, as text that keeps each bit */
#include "record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* FNV-1a */
static uint32_t sum_of(const char *text, size_t n)
{
    uint32_t sum = 0x811c9dc5;
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ (unsigned char)text[i]) * 0x01000193;
    return sum;
}

int64_t md_record_print(const struct md_record *r, char text[MD_RECORD_BYTES])
{
    const struct md_parameters *p = &r->parameters;
    int n = snprintf(text, MD_RECORD_BYTES,
                     "step %" PRId64 "\nparticles %" PRId64
                     "\nlength %.17g\ncut-off %.17g\ndt %.17g\nenergy-at-0 %.17g\n",
                     r->step, p->particles, p->length, p->cut_off, p->dt, r->start);
    if (p->temperature >= 0)
        n += snprintf(text + n, (size_t)(MD_RECORD_BYTES - n),
                      "temperature %.17g\nseed %" PRId64 "\n", p->temperature, p->seed);
    n += snprintf(text + n, (size_t)(MD_RECORD_BYTES - n), "sum %08" PRIx32 "\n",
                  sum_of(text, (size_t)n));
    return n;
}

/* What it says, printed again, is the same text: so nothing in it is left out or added. */
bool md_record_parse(const char *text, struct md_record *r)
{
    struct md_parameters *p = &r->parameters;
    char again[MD_RECORD_BYTES];
    int got = sscanf(text,
                     "step %" SCNd64 " particles %" SCNd64
                     " length %lf cut-off %lf dt %lf energy-at-0 %lf"
                     " temperature %lf seed %" SCNd64,
                     &r->step, &p->particles, &p->length, &p->cut_off, &p->dt, &r->start,
                     &p->temperature, &p->seed);
    if (got == 6) /* before they were written */
        p->temperature = -1, p->seed = -1;
    if ((got != 6 && got != 8) || r->step < 0 || p->particles < 1 || !(p->length > 0) ||
        !(p->cut_off > 0) || !(p->dt > 0) || !isfinite(p->length) || !isfinite(r->start))
        return false;
    md_record_print(r, again);
    return strcmp(again, text) == 0;
}
