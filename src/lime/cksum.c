/* cksum.c - compute the CRC of cksum(1) (crcCheckSum in QCDml), in one pass or from parts */
#include "cksum.h"

#include <isa-l/crc.h>

/* The polynomial without x^32. Bit i of a CRC is the coefficient of x^i. */
#define POLYNOMIAL UINT32_C(0x04c11db7)

void limefile_cksum_add(struct limefile_cksum *sum, const void *data, size_t n)
{
    sum->crc = ~crc32_ieee(~sum->crc, data, n); /* isa-l's CRC is the complement */
    sum->bytes += n;
}

uint32_t limefile_cksum_result(const struct limefile_cksum *sum)
{
    struct limefile_cksum all = *sum;
    for (uint64_t length = sum->bytes; length; length >>= 8) {
        unsigned char byte = (unsigned char)length;
        limefile_cksum_add(&all, &byte, 1);
    }
    return ~all.crc;
}

/* Multiplies two polynomials modulo x^32 + POLYNOMIAL. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (unsigned i = 0; i < 32; i++) {
        product = product << 1 ^ (POLYNOMIAL & -(product >> 31)) ^ (a & -(b >> 31));
        b <<= 1;
    }
    return product;
}

void cksum_powers_init(struct cksum_powers *powers)
{
    powers->factor[0] = UINT32_C(1) << 8;
    for (unsigned i = 1; i < CKSUM_POWERS; i++)
        powers->factor[i] = multiply(powers->factor[i - 1], powers->factor[i - 1]);
}

uint32_t cksum_shift(const struct cksum_powers *powers, uint32_t crc, uint64_t bytes)
{
    for (unsigned i = 0; bytes; i++, bytes >>= 1)
        if (bytes & 1)
            crc = multiply(crc, powers->factor[i]);
    return crc;
}

void limefile_cksum_cut(struct limefile_cksum *sum, const struct limefile_cksum *head)
{
    struct cksum_powers powers;
    cksum_powers_init(&powers);
    sum->bytes -= head->bytes;
    sum->crc ^= cksum_shift(&powers, head->crc, sum->bytes);
}
