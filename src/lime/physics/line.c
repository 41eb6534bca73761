/* line.c - what was measured, as a line of text */
#include "limephysics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int limefile_physics_print(const struct limefile_physics *p, char *buf, size_t cap)
{
    const struct limefile_physics_bad *bad = &p->first;
    return snprintf(buf, cap,
                    "physics 1 %a %a %a %a %a %a %a %" PRIu64 " %" PRIu64 " %" PRIu64
                    " %d %" PRIu64 " %u %u %a",
                    p->plaquette, p->space, p->time, p->trace, p->unitarity, p->determinant,
                    p->bound, p->nonfinite, p->bad_links, p->bad_sites, (int)bad->wrong,
                    bad->site, bad->direction, bad->real, bad->deviation);
}

/* The link is one of the configuration's, and there is one if any is bad. */
static bool is_right(const struct limefile_physics *p, const struct limefile_sites *sites)
{
    const struct limefile_physics_bad *bad = &p->first;
    uint64_t count = limefile_sites_count(sites);
    return (int)bad->wrong >= LIMEFILE_PHYSICS_GOOD &&
           bad->wrong <= LIMEFILE_PHYSICS_DETERMINANT && bad->site < count &&
           bad->direction < 4 && bad->real < LIMEFILE_LINK_REALS &&
           (bad->wrong != LIMEFILE_PHYSICS_GOOD) == (p->bad_links > 0) &&
           p->bad_sites <= count && p->bad_links <= 4 * p->bad_sites &&
           p->bad_sites <= p->bad_links && p->unitarity >= 0 && p->determinant >= 0 &&
           p->bound > 0 && isfinite(p->bound);
}

bool limefile_physics_parse(const char *line, const struct limefile_sites *sites,
                            struct limefile_physics *out)
{
    struct limefile_physics p = {0};
    struct limefile_physics_bad *bad = &p.first;
    int wrong = 0, end = -1;
    int n = sscanf(line,
                   "physics 1 %la %la %la %la %la %la %la %" SCNu64 " %" SCNu64 " %" SCNu64
                   " %d %" SCNu64 " %u %u %la%n",
                   &p.plaquette, &p.space, &p.time, &p.trace, &p.unitarity, &p.determinant,
                   &p.bound, &p.nonfinite, &p.bad_links, &p.bad_sites, &wrong, &bad->site,
                   &bad->direction, &bad->real, &bad->deviation, &end);
    bad->wrong = (enum limefile_physics_wrong)wrong;
    if (n != 15 || end < 0 || line[end] != '\0' || !is_right(&p, sites))
        return false;
    uint64_t site = bad->site;
    for (int d = 0; d < 4; site /= sites->extent[d++])
        bad->at[d] = site % sites->extent[d];
    *out = p;
    return true;
}
