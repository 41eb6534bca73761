/* checksum.c - compute the SciDAC checksum of a lattice record */
#include "checksum.h"

#include <isa-l/crc.h>

enum {
    AHEAD_BYTES = 16384, /* distance of the prefetched data from the data being summed */
    LINE_BYTES = 64,
};

static void prefetch_site(const unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n; i += LINE_BYTES)
        __builtin_prefetch(data + i);
}

void limefile_checksum_add(struct limefile_checksum *sum, const void *data, uint64_t sites,
                           size_t site_bytes, uint64_t first_rank)
{
    const unsigned char *site = data;
    unsigned a = (unsigned)(first_rank % 29), b = (unsigned)(first_rank % 31);
    uint64_t ahead = site_bytes && site_bytes < AHEAD_BYTES ? AHEAD_BYTES / site_bytes : 1;
    for (uint64_t i = 0; i < sites; i++, site += site_bytes) {
        if (ahead > 1 && sites - i > ahead)
            prefetch_site(site + ahead * site_bytes, site_bytes);
        uint32_t crc = crc32_gzip_refl(0, site, site_bytes);
        sum->suma ^= checksum_rotate(crc, a);
        sum->sumb ^= checksum_rotate(crc, b);
        a = a == 28 ? 0 : a + 1;
        b = b == 30 ? 0 : b + 1;
    }
}
