/*
 * particle.h - made-up particles: each is a function of a seed and of its number; pure, no MPI.
 *
 * They have what MarDyn's text format ICRVQD has. Where a particle is depends on the number of
 * particles alone, so that who has which does not change; the rest depends on a seed, too.
 */
#ifndef BENCH_PARTICLE_H
#define BENCH_PARTICLE_H

#include <stdint.h>

enum {
    BENCH_SPACE = 3, /* dimensions */
    BENCH_PARTICLE_BYTES = 120,
    BENCH_PARTICLE_NUMBERS = 15,
};

/* Where its numbers are, in bytes; what is between them is 0. */
enum bench_particle_offset {
    BENCH_AT_ID = 0,        /* uint64_t, from 1 */
    BENCH_AT_COMPONENT = 8, /* uint32_t */
    BENCH_AT_POSITION = 16, /* double[3] */
    BENCH_AT_VELOCITY = 40,
    BENCH_AT_ORIENTATION = 64, /* double[4] */
    BENCH_AT_MOMENTUM = 96,
};

enum bench_distribution {
    BENCH_UNIFORM,
    BENCH_CLUSTER, /* nine of ten in four drops */
};

struct bench_gas {
    int64_t particles;
    double length; /* of the domain, which is [0, length) in each dimension */
    enum bench_distribution distribution;
};

void bench_particle_position(const struct bench_gas *, int64_t id, double at[BENCH_SPACE]);

/* All of it: BENCH_PARTICLE_BYTES. */
void bench_particle_make(const struct bench_gas *, uint64_t seed, int64_t id, char *particle);

/* Of bytes that came from wherever. */
uint64_t bench_particle_id(const char *particle);
void bench_particle_where(const char *particle, double at[BENCH_SPACE]);

/* A particle as numbers, id and component first, and back. An id up to 2^53 stays what it is.
 */
void bench_particle_numbers(const char *particle, double numbers[BENCH_PARTICLE_NUMBERS]);
void bench_particle_of(const double numbers[BENCH_PARTICLE_NUMBERS], char *particle);

#endif
