/* checksum.h - functions shared by the modules that compute SciDAC checksums */
#ifndef LIMEFILE_CHECKSUM_H
#define LIMEFILE_CHECKSUM_H

#include "limefile.h"

static inline uint32_t checksum_rotate(uint32_t value, unsigned by)
{
    return by ? value << by | value >> (32 - by) : value;
}

/* Adds the CRC of one site; rank is the rank of the site. */
static inline void checksum_add_crc(struct limefile_checksum *sum, uint32_t crc, uint64_t rank)
{
    sum->suma ^= checksum_rotate(crc, (unsigned)(rank % 29));
    sum->sumb ^= checksum_rotate(crc, (unsigned)(rank % 31));
}

#endif
