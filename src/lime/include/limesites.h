/*
 * limesites.h - the sites of an SU(3) gauge configuration, in any file format.
 *
 * The physics check and the formats of other programs read sites through this interface, in
 * ILDG's layout: sites with x fastest and t slowest; in a site the links in directions x, y, z,
 * t; in a link 3 rows of 3 complex numbers, the real part first; IEEE 754, big-endian. A site
 * has 576 bytes in double and 288 in single precision.
 */
#ifndef LIMESITES_H
#define LIMESITES_H

#include "limeildg.h"

enum {
    LIMEFILE_LINK_REALS = 18,                      /* real numbers in one SU(3) matrix */
    LIMEFILE_SITE_REALS = 4 * LIMEFILE_LINK_REALS, /* real numbers in one site */
};

struct limefile_sites {
    uint64_t extent[4]; /* x, y, z, t; the product fits 55 bits */
    unsigned precision; /* bits of a real number in `out` of `read`: 32 or 64 */
    /* Fills out with the sites [first, first + count). Returns 0, -errno, LIMEFILE_E_SHRUNK, or
     * a code of the file's format. Several threads may call it at once. */
    int (*read)(void *context, uint64_t first, uint64_t count, void *out);
    void *context;
};

static inline uint64_t limefile_sites_count(const struct limefile_sites *sites)
{
    uint64_t count = 1;
    for (int i = 0; i < 4; i++)
        count *= sites->extent[i];
    return count;
}

/* Returns the bytes of one site. */
static inline size_t limefile_sites_bytes(const struct limefile_sites *sites)
{
    return (size_t)LIMEFILE_SITE_REALS * (sites->precision / 8);
}

/* ---- configurations in containers ---- */

/* Whether a field is an SU(3) gauge configuration: ILDG's su3gauge, or a QIO field of four 3x3
 * colour matrices a site, with any prefix of its datatype. All programs use
 * limefile_field_configuration(). */
enum limefile_configuration {
    LIMEFILE_CONFIGURATION,         /* a configuration that can be read */
    LIMEFILE_CONFIGURATION_UNKNOWN, /* may be a gauge field, but cannot be examined */
    LIMEFILE_NO_CONFIGURATION,      /* something else, such as a propagator */
};

#define LIMEFILE_WHY_VOLUME "one volume of a partitioned set; use 'lime join'"

/* Sets *why to the reason for LIMEFILE_CONFIGURATION_UNKNOWN (a static text), else to NULL. */
enum limefile_configuration limefile_field_configuration(const struct limefile_field *,
                                                         const char **why);

/* Makes the sites of a field in a container available in `out`. `out` points to `context`,
 * which must stay in place. Several threads must be able to read the source at once.
 * LIMEFILE_E_STATE: the field is not LIMEFILE_CONFIGURATION. */
struct limefile_sites_field {
    struct limefile_source *source;
    uint64_t data_offset;
    size_t site_bytes;
};
int limefile_sites_from_field(struct limefile_source *, const struct limefile_field *,
                              struct limefile_sites_field *context, struct limefile_sites *out);

#endif
