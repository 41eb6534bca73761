/* place.c - particles that are made */
#include "place.h"
#include "random.h"

#include <math.h>
#include <string.h>

enum row { /* of random numbers */
           ROW_POSITION,
           ROW_VELOCITY,
           ROW_COMPONENT,
           ROW_ROTATION,
           ROW_CENTRE,
};

enum {
    DROPLETS = 4,
};

const char *const checkpoint_distribution_names[] = {"uniform", "lattice", "cluster", NULL};

static int64_t sites_of(const int64_t sites[3])
{
    return sites[0] * sites[1] * sites[2];
}

void checkpoint_place_set(struct checkpoint_making *m)
{
    double n = m->particles > 0 ? (double)m->particles : 1;
    double edge = cbrt(m->length[0] * m->length[1] * m->length[2] / n);
    for (int d = 0; d < 3; d++) {
        double sites = floor(m->length[d] / edge + 1e-9);
        m->sites[d] = sites < 1 ? 1 : sites > n ? (int64_t)n : (int64_t)sites;
    }
    while (sites_of(m->sites) < m->particles) { /* where the distance is the largest */
        int widest = 0;
        for (int d = 1; d < 3; d++)
            if (m->length[d] / (double)m->sites[d] >
                m->length[widest] / (double)m->sites[widest])
                widest = d;
        m->sites[widest]++;
    }
}

static void place_on_site(const struct checkpoint_making *m, int64_t i, double share[3])
{
    int64_t site = (int64_t)((__int128)i * sites_of(m->sites) / m->particles);
    int64_t at[3];
    at[2] = site % m->sites[2];
    at[1] = site / m->sites[2] % m->sites[1];
    at[0] = site / m->sites[2] / m->sites[1];
    for (int d = 0; d < 3; d++)
        share[d] = ((double)at[d] + 0.5) / (double)m->sites[d];
}

/* In one of the droplets, or anywhere. */
static void place_in_cluster(const struct checkpoint_making *m, struct checkpoint_random *r,
                             double share[3])
{
    struct checkpoint_random centre;
    double luck = checkpoint_random_uniform(r) / 0.9, width = 0.06;
    int droplet = 0;
    for (double end = 8.0 / 15; droplet < DROPLETS && luck >= end; droplet++) {
        end += (8.0 / 15) / (double)(2 << droplet);
        width *= 0.8;
    }
    checkpoint_random_set(&centre, m->seed, (uint64_t)droplet, ROW_CENTRE);
    for (int d = 0; d < 3; d++) {
        share[d] = checkpoint_random_uniform(r);
        if (droplet == DROPLETS)
            continue;
        share[d] = checkpoint_random_uniform(&centre) + width * checkpoint_random_normal(r);
        share[d] -= floor(share[d]);
    }
}

void checkpoint_place(const struct checkpoint_making *m, int64_t i, double position[3])
{
    struct checkpoint_random r;
    double share[3];
    checkpoint_random_set(&r, m->seed, (uint64_t)i, ROW_POSITION);
    if (m->distribution == CHECKPOINT_LATTICE)
        place_on_site(m, i, share);
    else if (m->distribution == CHECKPOINT_CLUSTER)
        place_in_cluster(m, &r, share);
    else
        for (int d = 0; d < 3; d++)
            share[d] = checkpoint_random_uniform(&r);
    for (int d = 0; d < 3; d++) {
        double end = m->origin[d] + m->length[d];
        position[d] = m->origin[d] + share[d] * m->length[d];
        if (position[d] >= end) /* rounded */
            position[d] = nextafter(end, m->origin[d]);
    }
}

static void set_velocity(const struct checkpoint_making *m, int64_t i, double velocity[3])
{
    struct checkpoint_random r;
    double sign = i % 2 ? -1 : 1;
    checkpoint_random_set(&r, m->seed, (uint64_t)(i / 2), ROW_VELOCITY);
    for (int d = 0; d < 3; d++)
        velocity[d] = i == m->particles - 1 && i % 2 == 0
                          ? 0
                          : sign * sqrt(m->temperature) * checkpoint_random_normal(&r);
}

/* A rotation out of all alike, and the momentum of a body of moment 1. */
static void set_rotation(const struct checkpoint_making *m, int64_t i,
                         struct checkpoint_molecule *out)
{
    struct checkpoint_random r;
    double square = 0;
    checkpoint_random_set(&r, m->seed, (uint64_t)i, ROW_ROTATION);
    while (square < 1e-6) {
        square = 0;
        for (int d = 0; d < 4; d++) {
            out->orientation[d] = checkpoint_random_normal(&r);
            square += out->orientation[d] * out->orientation[d];
        }
    }
    for (int d = 0; d < 4; d++)
        out->orientation[d] /= sqrt(square);
    for (int d = 0; d < 3; d++)
        out->angular_momentum[d] = sqrt(m->temperature) * checkpoint_random_normal(&r);
}

void checkpoint_make(const struct checkpoint_making *m, int64_t i, const double position[3],
                     void *particle)
{
    struct checkpoint_molecule out = {.id = (uint64_t)i + 1};
    struct checkpoint_random r;
    checkpoint_random_set(&r, m->seed, (uint64_t)i, ROW_COMPONENT);
    if (m->format != CHECKPOINT_IRV)
        out.component = (uint32_t)(1 + checkpoint_random_word(&r) % (uint64_t)m->components);
    memcpy(out.position, position, sizeof out.position);
    set_velocity(m, i, out.velocity);
    if (m->format == CHECKPOINT_ICRVQD)
        set_rotation(m, i, &out);
    memcpy(particle, &out, (size_t)checkpoint_particle(m->format)->bytes);
}
