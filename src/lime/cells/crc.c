/* crc.c - the checksum of a cell, also put together from those of its pieces */
#include "limecells.h"

#include <isa-l/crc.h>

static const uint32_t polynomial = 0xedb88320; /* reflected: bit 31 is x^0 */

uint32_t limefile_cells_crc(uint32_t crc, const void *data, size_t n)
{
    return crc32_gzip_refl(crc, (unsigned char *)data, n);
}

/* a * b modulo the polynomial. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b & 1 ? b >> 1 ^ polynomial : b >> 1;
    }
    return product;
}

/* Bytes that follow shift what is there by x^8 each; the CRC is linear apart from that. */
uint32_t limefile_cells_crc_join(uint32_t first, uint32_t second, uint64_t n)
{
    uint32_t power = UINT32_C(1) << 23; /* x^8, then its square, and so on */
    for (; n; n >>= 1) {
        if (n & 1)
            first = multiply(first, power);
        power = multiply(power, power);
    }
    return first ^ second;
}
