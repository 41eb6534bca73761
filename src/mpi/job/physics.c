/* physics.c - plaquette and the like of part of a configuration: each rank reads and measures
 * its own, with the neighbours, and nothing but sums travels */
#define _GNU_SOURCE
#include "extent.h"
#include "limejobphysics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* What the library reads through. */
struct sites {
    struct job_worker *worker;
    const struct job_container *container;
    uint64_t offset;
    size_t site_bytes;
    int code;
    char why[128];
};

/* Out of the page cache: what follows a block is read once for it, and once for the next. */
static int read_sites(void *context, uint64_t first, uint64_t count, void *out)
{
    struct sites *s = context;
    size_t n = (size_t)count * s->site_bytes, done = 0;
    uint64_t at = s->offset + first * s->site_bytes;
    while (done < n) {
        ssize_t got =
            limefile_fd_read(s->container->fd, (char *)out + done, n - done, at + done);
        if (got <= 0) {
            snprintf(s->why, sizeof s->why, "read at %llu: %s", (unsigned long long)(at + done),
                     got < 0 ? strerror((int)-got) : "the file is shorter");
            return -EIO;
        }
        done += (size_t)got;
    }
    job_extent_progress(s->worker);
    return 0;
}

/* Of whole time slices, some of them; else some blocks. */
static struct limefile_physics_part share_of(const struct job_worker *worker,
                                             const struct limefile_physics_part *all,
                                             bool by_time)
{
    struct limefile_physics_part part = *all;
    uint64_t rank = (uint64_t)worker->rank, ranks = (uint64_t)worker->ranks;
    uint64_t count = by_time ? all->slices : all->blocks;
    uint64_t from = count * rank / ranks, n = count * (rank + 1) / ranks - from;
    if (by_time) {
        part.slice += from;
        part.slices = n;
    } else {
        part.block += from;
        part.blocks = n;
    }
    return part;
}

static bool is_whole(const struct limejob_physics *what)
{
    struct limefile_physics_part whole;
    return limefile_physics_whole(&what->sites, &whole) == 0 &&
           what->part.blocks == whole.blocks;
}

/* The disk is busy with all of it while the first of it is computed with. */
static void ask_ahead(const struct sites *s, const struct limejob_physics *what,
                      const struct limefile_physics_part *part)
{
    const uint64_t *extent = what->sites.extent;
    uint64_t slice = extent[0] * extent[1] * extent[2] * s->site_bytes;
    uint64_t slices = part->slice + part->slices < extent[3] ? part->slices + 1 : part->slices;
    posix_fadvise(s->container->fd, (off_t)(s->offset + part->slice * slice),
                  (off_t)(slices * slice), POSIX_FADV_WILLNEED);
}

static void answer(struct job_worker *worker, const struct limejob_packet *packet,
                   const struct limefile_physics_part *part,
                   const struct limefile_physics_sums *sums,
                   const struct limefile_physics_tally *tally)
{
    struct limejob_packet reply;
    uint64_t steps = part->blocks * part->slices;
    limejob_reply(&reply, packet, 0, NULL);
    limejob_put_u64(&reply, steps);
    limejob_put_tally(&reply, tally);
    limejob_put_u64(&reply, part->block);
    limejob_put_u64(&reply, part->blocks);
    limejob_put_u64(&reply, part->slice);
    limejob_put_u64(&reply, part->slices);
    limejob_put_sums(&reply, sums, steps);
    job_worker_answer(worker, &reply);
}

void job_extent_physics(struct job_worker *worker, struct limejob_packet *packet)
{
    static struct limefile_physics_sums sums[LIMEJOB_STEPS_MAX];
    struct limefile_physics_tally tally = {0};
    struct limejob_physics what;
    struct sites s = {.worker = worker,
                      .container = job_container_find(worker, limejob_get_u32(packet))};
    if (!limejob_get_physics(packet, &what) || !s.container)
        job_worker_fault(worker, "physics: no such container or lattice");
    bool by_time = is_whole(&what);
    struct limefile_physics_part part = share_of(worker, &what.part, by_time);
    s.offset = what.offset;
    s.site_bytes = limefile_sites_bytes(&what.sites);
    what.sites.read = read_sites;
    what.sites.context = &s;
    int err = 0;
    if (part.blocks && part.slices) {
        if (by_time)
            ask_ahead(&s, &what, &part);
        err = limefile_physics_measure_part(&what.sites, &part, what.bound, sums, &tally);
    }
    if (!err) {
        answer(worker, packet, &part, sums, &tally);
        return;
    }
    char text[JOB_TEXT_MAX];
    snprintf(text, sizeof text, "%.100s: %.300s: physics: %s", worker->host, s.container->path,
             s.why[0] ? s.why : strerror(-err));
    job_extent_answer(worker, packet, -err, text, 0);
}
