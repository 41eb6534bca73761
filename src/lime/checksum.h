/* checksum.h - what the files that make SciDAC checksums share */
#ifndef LIMEFILE_CHECKSUM_H
#define LIMEFILE_CHECKSUM_H

#include "limefile.h"

static inline uint32_t checksum_rotate(uint32_t value, unsigned by)
{
    return by ? value << by | value >> (32 - by) : value;
}

/* Adds a site whose CRC is known. */
static inline void checksum_add_crc(struct limefile_checksum *sum, uint32_t crc, uint64_t rank)
{
    sum->suma ^= checksum_rotate(crc, (unsigned)(rank % 29));
    sum->sumb ^= checksum_rotate(crc, (unsigned)(rank % 31));
}

#endif
