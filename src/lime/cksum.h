/* cksum.h - parts of a cksum that come in any order; inside of src/lime */
#ifndef LIMEFILE_CKSUM_H
#define LIMEFILE_CKSUM_H

#include "limefile.h"

enum { CKSUM_POWERS = 64 };

/* of[i]: what 2^i bytes of zeros make of a register, as a factor. */
struct cksum_powers {
    uint32_t of[CKSUM_POWERS];
};
void cksum_powers_init(struct cksum_powers *);

/* What a part's register adds to that of the whole, if so many bytes follow the part. The
 * registers of all parts, so moved, combine by XOR. */
uint32_t cksum_before(const struct cksum_powers *, uint32_t crc, uint64_t bytes);

#endif
