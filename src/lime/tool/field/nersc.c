/* nersc.c - the checksum of NERSC's format, which some documents have for a crcCheckSum */
#define _GNU_SOURCE
#include "nersc.h"
#include "limegauge.h"

#include <errno.h>
#include <stdlib.h>

enum { BLOCK_SITES = 4096 };

static int sum_up(const struct limefile_sites *sites, unsigned char *block,
                  struct nersc_sums *out)
{
    uint64_t all = limefile_sites_count(sites), n;
    int err = 0;
    for (uint64_t first = 0; !err && first < all; first += n) {
        n = all - first < BLOCK_SITES ? all - first : BLOCK_SITES;
        err = sites->read(sites->context, first, n, block);
        if (err)
            break;
        out->all += limefile_gauge_nersc_sum(block, n, sites->precision, 3);
        out->two_rows += limefile_gauge_nersc_sum(block, n, sites->precision, 2);
    }
    return err;
}

int nersc_sum(int fd, const struct limefile_field *field, struct nersc_sums *out)
{
    struct limefile_fd file;
    struct limefile_gauge *gauge;
    *out = (struct nersc_sums){.known = false};
    limefile_fd_init(&file, fd);
    int err = limefile_gauge_open_field(&file.source, field, &gauge);
    if (err)
        return err == LIMEFILE_E_GAUGE_NONE ? 0 : err;
    unsigned char *block = malloc(BLOCK_SITES * limefile_sites_bytes(&gauge->sites));
    err = block ? sum_up(&gauge->sites, block, out) : -ENOMEM;
    free(block);
    limefile_gauge_close(gauge);
    out->known = !err;
    return err;
}
