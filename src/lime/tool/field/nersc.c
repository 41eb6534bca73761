/* nersc.c - the checksum of NERSC's format, which some documents have for a crcCheckSum */
#define _GNU_SOURCE
#include "nersc.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

enum { BLOCK_SITES = 4096 };

static uint32_t sum_words(const unsigned char *at, size_t bytes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i + 4 <= bytes; i += 4)
        sum += (uint32_t)at[i] << 24 | (uint32_t)at[i + 1] << 16 | (uint32_t)at[i + 2] << 8 |
               at[i + 3];
    return sum;
}

/* Of each link all of it, and its first two rows. */
static void add(struct nersc_sums *sums, const unsigned char *data, uint64_t links,
                size_t link_bytes)
{
    for (; links; links--, data += link_bytes) {
        uint32_t two = sum_words(data, link_bytes / 3 * 2);
        sums->two_rows += two;
        sums->all += two + sum_words(data + link_bytes / 3 * 2, link_bytes / 3);
    }
}

int nersc_sum(int fd, const struct limefile_field *field, struct nersc_sums *out)
{
    *out = (struct nersc_sums){.known = false};
    if (strcasecmp(field->name, "su3gauge") != 0 || !limefile_field_is_summable(field) ||
        field->site_bytes != 4 * 18 * (field->precision / 8))
        return 0;
    size_t site = (size_t)field->site_bytes;
    unsigned char *block = malloc(BLOCK_SITES * site);
    if (!block)
        return -ENOMEM;
    int err = 0;
    for (uint64_t first = 0; !err && first < field->sites; first += BLOCK_SITES) {
        uint64_t left = field->sites - first, sites = left < BLOCK_SITES ? left : BLOCK_SITES;
        size_t n = (size_t)sites * site;
        ssize_t got = limefile_fd_read(fd, block, n, field->record.data_offset + first * site);
        err = got < 0 ? (int)got : (size_t)got < n ? LIMEFILE_E_SHRUNK : 0;
        if (!err)
            add(out, block, 4 * sites, site / 4);
    }
    free(block);
    out->known = !err;
    return err;
}
