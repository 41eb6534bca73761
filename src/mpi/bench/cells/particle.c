/* particle.c - made-up particles */
#include "particle.h"
#include "mix.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    DROPS = 4,
    OF_ONE = 16, /* random numbers of a particle, at most */
};

static uint64_t mixed(uint64_t x)
{
    return mix64(x + MIX64_STEP);
}

/* [0, 1) */
static double fraction(uint64_t key, uint64_t i)
{
    return mix64_fraction(mixed(key + i));
}

/* In the domain, as if that were periodic. */
static double wrapped(double x, double length)
{
    x -= length * floor(x / length);
    return x < length && x >= 0 ? x : 0;
}

void bench_particle_position(const struct bench_gas *gas, int64_t id, double at[BENCH_SPACE])
{
    uint64_t key = (uint64_t)id * OF_ONE;
    uint64_t chance = gas->distribution == BENCH_CLUSTER ? mixed(key + 12) : 0;
    bool drops = gas->distribution == BENCH_CLUSTER && chance % 10 != 0;
    for (int d = 0; d < BENCH_SPACE; d++) {
        double x = fraction(key, (uint64_t)d);
        if (drops) {
            double centre =
                fraction(~UINT64_C(0) << 32, chance / 10 % DROPS * BENCH_SPACE + (uint64_t)d);
            /* The sum of three has something like a bell's shape. */
            x += fraction(key, (uint64_t)d + 3) + fraction(key, (uint64_t)d + 6);
            x = centre + (x - 1.5) / 6;
        }
        at[d] = wrapped(x * gas->length, gas->length);
    }
}

void bench_particle_make(const struct bench_gas *gas, uint64_t seed, int64_t id, char *particle)
{
    double numbers[BENCH_PARTICLE_NUMBERS], square = 0;
    uint64_t key = mixed(seed) + (uint64_t)id * OF_ONE;
    numbers[0] = (double)id;
    numbers[1] = (double)(1 + mixed(key) % 3);
    bench_particle_position(gas, id, numbers + 2);
    for (int i = 5; i < BENCH_PARTICLE_NUMBERS; i++)
        numbers[i] = 2 * fraction(key, (uint64_t)i) - 1;
    for (int i = 8; i < 12; i++)
        square += numbers[i] * numbers[i];
    for (int i = 8; i < 12 && square > 0; i++)
        numbers[i] /= sqrt(square); /* a rotation is a unit quaternion */
    bench_particle_of(numbers, particle);
}

uint64_t bench_particle_id(const char *particle)
{
    uint64_t id;
    memcpy(&id, particle + BENCH_AT_ID, sizeof id);
    return id;
}

void bench_particle_where(const char *particle, double at[BENCH_SPACE])
{
    memcpy(at, particle + BENCH_AT_POSITION, BENCH_SPACE * sizeof *at);
}

void bench_particle_numbers(const char *particle, double numbers[BENCH_PARTICLE_NUMBERS])
{
    uint32_t component;
    memcpy(&component, particle + BENCH_AT_COMPONENT, sizeof component);
    numbers[0] = (double)bench_particle_id(particle);
    numbers[1] = component;
    memcpy(numbers + 2, particle + BENCH_AT_POSITION, 13 * sizeof *numbers);
}

/* 0 for what cannot be one, which is then a wrong byte. */
static uint64_t whole(double number, double most)
{
    return number >= 0 && number <= most ? (uint64_t)number : 0;
}

void bench_particle_of(const double numbers[BENCH_PARTICLE_NUMBERS], char *particle)
{
    uint64_t id = whole(numbers[0], 0x1p63);
    uint32_t component = (uint32_t)whole(numbers[1], UINT32_MAX);
    memset(particle, 0, BENCH_AT_POSITION);
    memcpy(particle + BENCH_AT_ID, &id, sizeof id);
    memcpy(particle + BENCH_AT_COMPONENT, &component, sizeof component);
    memcpy(particle + BENCH_AT_POSITION, numbers + 2, 13 * sizeof *numbers);
}
