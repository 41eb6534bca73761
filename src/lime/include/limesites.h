/*
 * limesites.h - the sites of an SU(3) gauge configuration, whatever file they come from.
 *
 * All that works on configurations (the physics check, the formats of other programs) takes
 * sites from here, as ILDG stores them: sites with x fastest and t slowest; of each site the
 * links in directions x, y, z, t; of each link 3 rows of 3 complex numbers, the real part
 * first; IEEE 754, big-endian. So a site has 576 bytes in double and 288 in single precision.
 */
#ifndef LIMESITES_H
#define LIMESITES_H

#include "limeildg.h"

enum {
    LIMEFILE_LINK_REALS = 18,                      /* of one SU(3) matrix */
    LIMEFILE_SITE_REALS = 4 * LIMEFILE_LINK_REALS, /* of one site */
};

struct limefile_sites {
    uint64_t extent[4]; /* x, y, z, t; their product fits 55 bits: bytes fit 63 */
    unsigned precision; /* 32 or 64: bits of a real number, as `read` gives them */
    /* Fills out with the sites [first, first + count). 0, -errno, LIMEFILE_E_SHRUNK, or a code
     * of the file's format. Several threads may call it at once. */
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

/* Of one site. */
static inline size_t limefile_sites_bytes(const struct limefile_sites *sites)
{
    return (size_t)LIMEFILE_SITE_REALS * (sites->precision / 8);
}

/* ---- configurations in containers ---- */

/*
 * Whether a field is an SU(3) gauge configuration: ILDG's su3gauge, or a QIO field of four 3x3
 * colour matrices a site, whatever the prefix of its datatype. All programs ask this function.
 */
enum limefile_configuration {
    LIMEFILE_CONFIGURATION,         /* it is one, and can be read */
    LIMEFILE_CONFIGURATION_UNKNOWN, /* it is or can be a gauge field, but it cannot be examined
                                     */
    LIMEFILE_NO_CONFIGURATION,      /* it is something else, such as a propagator */
};

#define LIMEFILE_WHY_VOLUME \
    "one volume of a partitioned set; 'lime join' makes one container of the set"

/* *why: the reason for LIMEFILE_CONFIGURATION_UNKNOWN, static; NULL otherwise. why may be NULL.
 */
enum limefile_configuration limefile_field_configuration(const struct limefile_field *,
                                                         const char **why);

/* The sites of a field in a container: `context` must stay where it is as long as they are
 * used, and the source must bear several threads (as a descriptor does). LIMEFILE_E_STATE if
 * the field is not LIMEFILE_CONFIGURATION. */
struct limefile_sites_field {
    struct limefile_source *source;
    uint64_t data_offset;
    size_t site_bytes;
};
int limefile_sites_of_field(struct limefile_source *, const struct limefile_field *,
                            struct limefile_sites_field *context, struct limefile_sites *out);

#endif
