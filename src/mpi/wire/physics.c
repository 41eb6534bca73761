/* physics.c - the payloads of PHYSICS */
#include "limejobphysics.h"

#include <string.h>

static void put_double(struct limejob_packet *packet, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    limejob_put_u64(packet, bits);
}

static double get_double(struct limejob_packet *packet)
{
    double value;
    uint64_t bits = limejob_get_u64(packet);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- what is asked for ---- */

void limejob_put_physics(struct limejob_packet *packet, const struct limejob_physics *p)
{
    limejob_put_u64(packet, p->offset);
    for (int d = 0; d < 4; d++)
        limejob_put_u32(packet, (uint32_t)p->sites.extent[d]);
    limejob_put_u32(packet, p->sites.precision);
    put_double(packet, p->bound);
    limejob_put_u64(packet, p->part.block);
    limejob_put_u64(packet, p->part.blocks);
    limejob_put_u64(packet, p->part.slice);
    limejob_put_u64(packet, p->part.slices);
}

static bool is_inside(uint64_t from, uint64_t count, uint64_t all)
{
    return count > 0 && count <= all && from <= all - count;
}

bool limejob_get_physics(struct limejob_packet *packet, struct limejob_physics *p)
{
    struct limefile_physics_part whole;
    *p = (struct limejob_physics){.offset = limejob_get_u64(packet)};
    for (int d = 0; d < 4; d++)
        p->sites.extent[d] = limejob_get_u32(packet);
    p->sites.precision = limejob_get_u32(packet);
    p->bound = get_double(packet);
    p->part.block = limejob_get_u64(packet);
    p->part.blocks = limejob_get_u64(packet);
    p->part.slice = limejob_get_u64(packet);
    p->part.slices = limejob_get_u64(packet);
    return !packet->broken && p->bound >= 0 && limefile_physics_whole(&p->sites, &whole) == 0 &&
           is_inside(p->part.block, p->part.blocks, whole.blocks) &&
           is_inside(p->part.slice, p->part.slices, whole.slices) &&
           p->part.slices <= LIMEJOB_STEPS_MAX / p->part.blocks;
}

/* ---- what comes of it ---- */

void limejob_put_tally(struct limejob_packet *packet, const struct limefile_physics_tally *t)
{
    put_double(packet, t->unitarity);
    put_double(packet, t->determinant);
    limejob_put_u64(packet, t->nonfinite);
    limejob_put_u64(packet, t->bad_links);
    limejob_put_u64(packet, t->bad_sites);
    limejob_put_u32(packet, t->first.wrong);
    limejob_put_u64(packet, t->first.site);
    limejob_put_u32(packet, t->first.direction);
    limejob_put_u32(packet, t->first.real);
    put_double(packet, t->first.deviation);
}

bool limejob_get_tally(struct limejob_packet *packet, const struct limefile_sites *sites,
                       struct limefile_physics_tally *t)
{
    struct limefile_physics_bad *bad = &t->first;
    *t = (struct limefile_physics_tally){.unitarity = get_double(packet)};
    t->determinant = get_double(packet);
    t->nonfinite = limejob_get_u64(packet);
    t->bad_links = limejob_get_u64(packet);
    t->bad_sites = limejob_get_u64(packet);
    uint32_t wrong = limejob_get_u32(packet);
    uint64_t site = bad->site = limejob_get_u64(packet);
    bad->direction = limejob_get_u32(packet);
    bad->real = limejob_get_u32(packet);
    bad->deviation = get_double(packet);
    for (int d = 0; d < 4; site /= sites->extent[d++])
        bad->at[d] = site % sites->extent[d];
    bad->wrong = (enum limefile_physics_wrong)wrong;
    return !packet->broken && wrong <= LIMEFILE_PHYSICS_DETERMINANT && site == 0 &&
           bad->direction < 4 && bad->real < LIMEFILE_LINK_REALS;
}

void limejob_put_sums(struct limejob_packet *packet, const struct limefile_physics_sums *sums,
                      uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        put_double(packet, sums[i].space);
        put_double(packet, sums[i].time);
        put_double(packet, sums[i].trace);
    }
}

void limejob_get_sums(struct limejob_packet *packet, struct limefile_physics_sums *sums,
                      uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        sums[i].space = get_double(packet);
        sums[i].time = get_double(packet);
        sums[i].trace = get_double(packet);
    }
}
