/* nersc.h - the checksum of NERSC's format, of data in a container */
#ifndef NERSC_H
#define NERSC_H

#include "limeildg.h"

/* The sum of all 32-bit words, and of those of the first two rows of each link. */
struct nersc_sums {
    bool known;
    uint32_t all, two_rows;
};

/* Of an SU(3) configuration; of others it stays unknown. 0, -errno, LIMEFILE_E_SHRUNK. */
int nersc_sum(int fd, const struct limefile_field *, struct nersc_sums *out);

#endif
