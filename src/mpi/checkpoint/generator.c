/* generator.c - make particles from a seed */
#include "generator.h"
#include "splitmix64.h"

#include <math.h>
#include <string.h>

/* The independent random sequences of a particle; STREAM_CENTRE is that of a droplet. */
enum stream {
    STREAM_POSITION,
    STREAM_VELOCITY,
    STREAM_COMPONENT,
    STREAM_ROTATION,
    STREAM_CENTRE,
};

enum {
    DROPLETS = 4,
};

/* A sequence of random numbers, which are hashes of a counter. The sequence depends only on
 * seed, particle and stream. Therefore any rank can generate any particle. */
struct random {
    uint64_t key, next;
};

static void init_random(struct random *r, uint64_t seed, uint64_t particle, enum stream stream)
{
    uint64_t particle_key = mix64(mix64(seed + MIX64_STEP) + particle + MIX64_STEP);
    r->key = mix64(particle_key + stream + MIX64_STEP);
    r->next = 0;
}

static uint64_t random_word(struct random *r)
{
    return mix64(r->key + ++r->next * MIX64_STEP);
}

static double random_uniform(struct random *r)
{
    return mix64_fraction(random_word(r));
}

static double random_normal(struct random *r)
{
    double u = 1 - random_uniform(r); /* in (0, 1] */
    double angle = 2 * M_PI * random_uniform(r);
    return sqrt(-2 * log(u)) * cos(angle);
}

const char *const checkpoint_distribution_names[] = {"uniform", "lattice", "cluster", NULL};

static int64_t multiply_sites(const int64_t sites[3])
{
    return sites[0] * sites[1] * sites[2];
}

/* Sets m->sites to the extents of a lattice with at least as many sites as particles. */
static void set_sites(struct checkpoint_generator *m)
{
    double n = m->particles > 0 ? (double)m->particles : 1;
    double edge = cbrt(m->length[0] * m->length[1] * m->length[2] / n);
    for (int d = 0; d < 3; d++) {
        double sites = floor(m->length[d] / edge + 1e-9);
        m->sites[d] = sites < 1 ? 1 : sites > n ? (int64_t)n : (int64_t)sites;
    }
    while (multiply_sites(m->sites) < m->particles) { /* refine the widest spacing */
        int widest = 0;
        for (int d = 1; d < 3; d++)
            if (m->length[d] / (double)m->sites[d] >
                m->length[widest] / (double)m->sites[widest])
                widest = d;
        m->sites[widest]++;
    }
}

/* Sets fraction to particle i's position on the lattice, divided by the domain's lengths. */
static void place_on_site(const struct checkpoint_generator *m, int64_t i, double fraction[3])
{
    int64_t site = (int64_t)((__int128)i * multiply_sites(m->sites) / m->particles);
    int64_t at[3];
    at[2] = site % m->sites[2];
    at[1] = site / m->sites[2] % m->sites[1];
    at[0] = site / m->sites[2] / m->sites[1];
    for (int d = 0; d < 3; d++)
        fraction[d] = ((double)at[d] + 0.5) / (double)m->sites[d];
}

/* Sets fraction to a random position, in a droplet or anywhere, divided by the lengths. */
static void place_in_cluster(const struct checkpoint_generator *m, struct random *r,
                             double fraction[3])
{
    struct random centre;
    double choice = random_uniform(r) / 0.9, width = 0.06;
    int droplet = 0;
    for (double end = 8.0 / 15; droplet < DROPLETS && choice >= end; droplet++) {
        end += (8.0 / 15) / (double)(2 << droplet);
        width *= 0.8;
    }
    init_random(&centre, m->seed, (uint64_t)droplet, STREAM_CENTRE);
    for (int d = 0; d < 3; d++) {
        fraction[d] = random_uniform(r);
        if (droplet == DROPLETS)
            continue;
        fraction[d] = random_uniform(&centre) + width * random_normal(r);
        fraction[d] -= floor(fraction[d]);
    }
}

/* Chooses a position in the domain, never on an upper face. */
static void set_position(const struct checkpoint_generator *m, int64_t i, double position[3])
{
    struct random r;
    double fraction[3];
    init_random(&r, m->seed, (uint64_t)i, STREAM_POSITION);
    if (m->distribution == CHECKPOINT_LATTICE)
        place_on_site(m, i, fraction);
    else if (m->distribution == CHECKPOINT_CLUSTER)
        place_in_cluster(m, &r, fraction);
    else
        for (int d = 0; d < 3; d++)
            fraction[d] = random_uniform(&r);
    for (int d = 0; d < 3; d++) {
        double end = m->length[d];
        position[d] = fraction[d] * m->length[d];
        if (position[d] >= end) /* the product was rounded up */
            position[d] = nextafter(end, 0);
    }
}

/* Gives particles 2k and 2k + 1 opposite velocities; a last particle without a partner, 0. */
static void set_velocity(const struct checkpoint_generator *m, int64_t i, double velocity[3])
{
    struct random r;
    double sign = i % 2 ? -1 : 1;
    init_random(&r, m->seed, (uint64_t)(i / 2), STREAM_VELOCITY);
    for (int d = 0; d < 3; d++)
        velocity[d] = i == m->particles - 1 && i % 2 == 0
                          ? 0
                          : sign * sqrt(m->temperature) * random_normal(&r);
}

/* Sets a uniformly random orientation, and the angular momentum for moments of inertia 1. */
static void set_rotation(const struct checkpoint_generator *m, int64_t i,
                         struct checkpoint_molecule *out)
{
    struct random r;
    double square = 0;
    init_random(&r, m->seed, (uint64_t)i, STREAM_ROTATION);
    while (square < 1e-6) {
        square = 0;
        for (int d = 0; d < 4; d++) {
            out->orientation[d] = random_normal(&r);
            square += out->orientation[d] * out->orientation[d];
        }
    }
    for (int d = 0; d < 4; d++)
        out->orientation[d] /= sqrt(square);
    for (int d = 0; d < 3; d++)
        out->angular_momentum[d] = sqrt(m->temperature) * random_normal(&r);
}

static void make_one(const struct checkpoint_generator *m, int64_t i,
                     struct checkpoint_particles *p)
{
    struct checkpoint_molecule out = {.id = (uint64_t)i + 1};
    struct random r;
    init_random(&r, m->seed, (uint64_t)i, STREAM_COMPONENT);
    if (m->format != CHECKPOINT_IRV)
        out.component = (uint32_t)(1 + random_word(&r) % (uint64_t)m->components);
    set_position(m, i, out.position);
    set_velocity(m, i, out.velocity);
    if (m->format == CHECKPOINT_ICRVQD)
        set_rotation(m, i, &out);
    memcpy(checkpoint_particles_add(p), &out, (size_t)p->bytes);
}

void checkpoint_generate_particles(struct checkpoint_generator *m, int rank, int ranks,
                                   struct checkpoint_particles *p)
{
    int64_t end = (int64_t)((__int128)m->particles * (rank + 1) / ranks);
    set_sites(m);
    *p = (struct checkpoint_particles){.bytes = checkpoint_layout(m->format)->bytes};
    for (int64_t i = (int64_t)((__int128)m->particles * rank / ranks); i < end; i++)
        make_one(m, i, p);
}
