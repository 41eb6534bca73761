/* measure.c - PHYSICS, as the server sees it: checked, sent to the workers, put together */
#include "limejobphysics.h"
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What has come of a request so far. */
struct job_measure {
    struct limejob_physics what;
    struct limefile_physics_tally tally;
    struct limefile_physics_sums sums[];
};

static uint64_t steps_of(const struct limefile_physics_part *part)
{
    return part->blocks * part->slices;
}

static const char *check(const struct job_file *file, const struct limejob_physics *p,
                         bool right, int *code)
{
    uint64_t bytes;
    *code = EINVAL;
    if (!right)
        return "physics: no such lattice, or no part of it";
    *code = ENXIO;
    if (__builtin_mul_overflow(limefile_sites_count(&p->sites), limefile_sites_bytes(&p->sites),
                               &bytes) ||
        bytes > file->identity.bytes || p->offset > file->identity.bytes - bytes)
        return "physics: outside of the file";
    return NULL;
}

void job_client_physics(struct job_server *server, struct job_client *client,
                        struct limejob_packet *packet)
{
    static struct limejob_packet command;
    struct limejob_physics what;
    int code;
    struct job_file *file = job_client_file(server, client, packet, limejob_get_u32(packet));
    bool right = limejob_get_physics(packet, &what);
    if (!file)
        return;
    const char *wrong = check(file, &what, right, &code);
    if (wrong) {
        job_client_answer(server, client, packet, code, wrong);
        return;
    }
    uint64_t steps = steps_of(&what.part);
    struct job_measure *m = calloc(1, sizeof *m + steps * sizeof *m->sums);
    if (!m) {
        job_client_answer(server, client, packet, ENOMEM, NULL);
        return;
    }
    m->what = what;
    struct job_request *request = job_client_begin(server, client, packet, JOB_PHYSICS, file);
    if (!request) {
        free(m);
        return;
    }
    request->measure = m;
    request->bytes = steps;
    limejob_request(&command, JOB_PHYSICS, 0);
    limejob_put_u32(&command, file->id);
    limejob_put_physics(&command, &what);
    job_request_send(server, request, &command);
}

static bool is_inside(uint64_t from, uint64_t count, uint64_t first, uint64_t all)
{
    return from >= first && count <= all && from - first <= all - count;
}

uint64_t job_measure_take(struct job_request *request, struct limejob_packet *packet)
{
    static struct limefile_physics_sums sums[LIMEJOB_STEPS_MAX];
    struct job_measure *m = request->measure;
    const struct limefile_physics_part *all = &m->what.part;
    struct limefile_physics_tally tally;
    struct limefile_physics_part part;
    uint64_t steps = limejob_get_u64(packet);
    bool right = limejob_get_tally(packet, &m->what.sites, &tally);
    part.block = limejob_get_u64(packet);
    part.blocks = limejob_get_u64(packet);
    part.slice = limejob_get_u64(packet);
    part.slices = limejob_get_u64(packet);
    right = right && is_inside(part.block, part.blocks, all->block, all->blocks) &&
            is_inside(part.slice, part.slices, all->slice, all->slices) &&
            steps == steps_of(&part);
    if (right)
        limejob_get_sums(packet, sums, steps);
    packet->broken = packet->broken || !right;
    if (packet->broken)
        return 0;
    for (uint64_t i = 0; i < steps; i++)
        m->sums[(part.block - all->block + i / part.slices) * all->slices + part.slice -
                all->slice + i % part.slices] = sums[i];
    limefile_physics_merge(&m->tally, &tally);
    return steps;
}

void job_measure_put(const struct job_request *request, struct limejob_packet *reply)
{
    const struct job_measure *m = request->measure;
    limejob_put_tally(reply, &m->tally);
    limejob_put_sums(reply, m->sums, steps_of(&m->what.part));
}
