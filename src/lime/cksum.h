/* cksum.h - combine the cksums of parts in any order. For src/lime only. */
#ifndef LIMEFILE_CKSUM_H
#define LIMEFILE_CKSUM_H

#include "limefile.h"

enum { CKSUM_POWERS = 64 };

/* Multiplying a CRC by factor[i] gives the CRC of the same bytes followed by 2^i zero bytes. */
struct cksum_powers {
    uint32_t factor[CKSUM_POWERS];
};
void cksum_powers_init(struct cksum_powers *);

/* Returns what a part with this CRC contributes to the CRC of the whole, if `bytes` bytes
 * follow the part. The contributions of all parts are combined by XOR. */
uint32_t cksum_shift(const struct cksum_powers *, uint32_t crc, uint64_t bytes);

#endif
