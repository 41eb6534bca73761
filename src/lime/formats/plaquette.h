/* plaquette.h - figures of sites: plaquette, trace, distance from SU(3); inside of
 * src/lime/formats */
#ifndef LIMEFILE_PLAQUETTE_H
#define LIMEFILE_PLAQUETTE_H

#include "limegauge.h"

/* Sums in fixed point, so that they do not depend on who adds what. */
typedef __int128 figure;

struct figures {
    figure plaquette; /* the sum of the real parts of the traces of all plaquettes */
    figure trace;     /* of all links */
    double deviation; /* the largest */
    uint64_t worst_site;
    unsigned worst_direction;
    uint64_t unfinite; /* links */
};

/* All sites of one z and t, as ILDG stores them; and those above them, or NULL: no plaquettes.
 */
struct plaquette_plane {
    const uint64_t *extent;
    unsigned precision;
    uint64_t first; /* rank of its first site */
    const unsigned char *here, *above_z, *above_t;
};

/* Adds the plane. `scratch`: plaquette_scratch() numbers, aligned to 64 bytes. */
void plaquette_add(const struct plaquette_plane *, double *scratch, struct figures *);
size_t plaquette_scratch(const uint64_t extent[4]);

double plaquette_of_figure(figure);

/* Those of another part are added. */
void plaquette_combine(struct figures *, const struct figures *more);

#endif
