/* sums.c - SciDAC checksums of parts of a lattice, site by site */
#include "sums.h"

#include <isa-l/crc.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void lemon_sums_add(struct limefile_checksum *sum, const struct lemon_box *box, uint64_t first,
                    const char *memory, int64_t from, int64_t to)
{
    int64_t site = box->site_bytes, run = lemon_box_run_bytes(box);
    struct lemon_box_walk walk;
    if (run == 0)
        return;
    int64_t at = from + (site - from % site) % site, end = to - to % site;
    if (at >= end)
        return;
    lemon_box_walk_set(&walk, box, run, at / run);
    for (int64_t inside = at % run; at < end; inside = 0) {
        int64_t n = smaller(run - inside, end - at);
        limefile_checksum_add(sum, memory + at, (uint64_t)(n / site), (size_t)site,
                              first + (uint64_t)((walk.offset + inside) / site));
        at += n;
        lemon_box_walk_next(&walk);
    }
}

static uint32_t rotate_left(uint32_t value, unsigned by)
{
    return by ? value << by | value >> (32 - by) : value;
}

static void end_site(struct lemon_sums_stream *stream)
{
    stream->sum.suma ^= rotate_left(stream->crc, (unsigned)(stream->rank % 29));
    stream->sum.sumb ^= rotate_left(stream->crc, (unsigned)(stream->rank % 31));
    stream->rank++;
    stream->inside = 0;
    stream->crc = 0;
}

void lemon_sums_feed(struct lemon_sums_stream *stream, const char *data, int64_t n)
{
    int64_t site = stream->site_bytes;
    while (n > 0) {
        int64_t sites = stream->inside ? 0 : n / site, bytes = sites * site;
        if (sites == 0) {
            bytes = smaller(site - stream->inside, n);
            stream->crc =
                crc32_gzip_refl(stream->crc, (const unsigned char *)data, (uint64_t)bytes);
            stream->inside += bytes;
            if (stream->inside == site)
                end_site(stream);
        } else {
            limefile_checksum_add(&stream->sum, data, (uint64_t)sites, (size_t)site,
                                  stream->rank);
            stream->rank += (uint64_t)sites;
        }
        data += bytes;
        n -= bytes;
    }
}
