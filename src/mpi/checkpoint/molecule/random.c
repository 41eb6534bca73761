/* random.c - a counter, mixed */
#include "random.h"

#include <math.h>

/* The finalizer of splitmix64: each bit of the input changes half of those of the output. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

void checkpoint_random_set(struct checkpoint_random *r, uint64_t seed, uint64_t particle,
                           uint64_t row)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    r->key = mix(mix(mix(seed + golden) + particle + golden) + row + golden);
    r->next = 0;
}

uint64_t checkpoint_random_word(struct checkpoint_random *r)
{
    return mix(r->key + ++r->next * UINT64_C(0x9E3779B97F4A7C15));
}

double checkpoint_random_uniform(struct checkpoint_random *r)
{
    return (double)(checkpoint_random_word(r) >> 11) * 0x1p-53;
}

double checkpoint_random_normal(struct checkpoint_random *r)
{
    double u = 1 - checkpoint_random_uniform(r); /* in (0, 1] */
    double angle = 2 * M_PI * checkpoint_random_uniform(r);
    return sqrt(-2 * log(u)) * cos(angle);
}
