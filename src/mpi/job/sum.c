/* sum.c - the SciDAC checksum of a run of sites: each rank reads and sums its own, and nothing
 * but the sums travels */
#define _GNU_SOURCE
#include "extent.h"
#include "limefile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a command names. */
struct sites {
    struct job_container *container;
    uint64_t offset, bytes, site_bytes, first;
};

static struct sites parse(struct job_worker *worker, struct limejob_packet *packet)
{
    struct sites sites = {.container = job_container_find(worker, limejob_get_u32(packet))};
    sites.offset = limejob_get_u64(packet);
    sites.bytes = limejob_get_u64(packet);
    sites.site_bytes = limejob_get_u64(packet);
    sites.first = limejob_get_u64(packet);
    if (packet->broken || !sites.container || sites.site_bytes == 0 ||
        sites.site_bytes > LIMEJOB_SITE_MAX)
        job_worker_fault(worker, "sum: no such container or sites");
    return sites;
}

/* Cuts it down to the sites of this rank. */
static void take_share(const struct job_worker *worker, struct sites *sites)
{
    uint64_t count = sites->bytes / sites->site_bytes, ranks = (uint64_t)worker->ranks;
    uint64_t rank = (uint64_t)worker->rank, each = count / ranks, more = count % ranks;
    uint64_t from = rank * each + (rank < more ? rank : more);
    uint64_t n = each + (rank < more);
    sites->offset += from * sites->site_bytes;
    sites->bytes = n * sites->site_bytes;
    sites->first += from;
}

/* Returns JOB_PART bytes, aligned for direct reads, with LIMEJOB_SITE_MAX before them, or NULL:
 * no memory. */
static char *get_scratch(struct job_worker *worker)
{
    const size_t before = LIMEFILE_HUGE_PAGE; /* so that the rest is aligned, too */
    size_t bytes = before + JOB_PART;
    _Static_assert(LIMEJOB_SITE_MAX <= LIMEFILE_HUGE_PAGE,
                   "what comes before it fits into a huge page");
    if (!worker->scratch)
        worker->scratch = limefile_buffer_new(&bytes);
    return worker->scratch ? worker->scratch + before : NULL;
}

/* Reads end at multiples of LIMEJOB_ALIGN of the file, so that they may go around the page
 * cache; sites do not: before the buffer there is room for the part of one that is left of the
 * read before. */
static int add_all(struct job_worker *worker, const struct sites *sites, char *buffer,
                   struct limefile_checksum *sum, char *why, size_t cap)
{
    uint64_t at = sites->offset, end = at + sites->bytes, rank = sites->first;
    size_t left = 0; /* bytes of a site, before what is read next */
    struct lemon_range_fault fault;
    while (at < end) {
        size_t skew = at % LIMEJOB_ALIGN, n = JOB_PART - skew;
        if (n > end - at)
            n = (size_t)(end - at);
        char *data = buffer + skew;
        if (!lemon_range_move(&sites->container->file, LEMON_READ, data, (int64_t)n,
                              (int64_t)at, &fault)) {
            lemon_range_explain(&fault, why, cap);
            return EIO;
        }
        size_t have = left + n, whole = have / sites->site_bytes;
        data -= left;
        limefile_checksum_add(sum, data, whole, sites->site_bytes, rank);
        left = have - whole * sites->site_bytes;
        memmove(buffer - left, data + have - left, left);
        rank += whole;
        at += n;
        job_extent_progress(worker);
    }
    return 0;
}

void job_extent_sum(struct job_worker *worker, struct limejob_packet *packet)
{
    struct limejob_packet reply;
    char text[JOB_TEXT_MAX] = "", why[128] = "";
    struct limefile_checksum sum = {0};
    struct sites sites = parse(worker, packet);
    char *buffer = get_scratch(worker);
    take_share(worker, &sites);
    int code = buffer ? add_all(worker, &sites, buffer, &sum, why, sizeof why) : ENOMEM;
    if (code)
        snprintf(text, sizeof text, "%.100s: %.300s: sum: %s", worker->host,
                 sites.container->path, why[0] ? why : strerror(code));
    limejob_reply(&reply, packet, code, text);
    if (!code) {
        limejob_put_u64(&reply, sites.bytes);
        limejob_put_u32(&reply, sum.suma);
        limejob_put_u32(&reply, sum.sumb);
    }
    job_worker_answer(worker, &reply);
}
