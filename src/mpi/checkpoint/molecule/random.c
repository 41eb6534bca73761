/* random.c - a counter, mixed */
#include "random.h"
#include "mix.h"

#include <math.h>

void checkpoint_random_set(struct checkpoint_random *r, uint64_t seed, uint64_t particle,
                           uint64_t row)
{
    uint64_t of_particle = mix64(mix64(seed + MIX64_STEP) + particle + MIX64_STEP);
    r->key = mix64(of_particle + row + MIX64_STEP);
    r->next = 0;
}

uint64_t checkpoint_random_word(struct checkpoint_random *r)
{
    return mix64(r->key + ++r->next * MIX64_STEP);
}

double checkpoint_random_uniform(struct checkpoint_random *r)
{
    return mix64_fraction(checkpoint_random_word(r));
}

double checkpoint_random_normal(struct checkpoint_random *r)
{
    double u = 1 - checkpoint_random_uniform(r); /* in (0, 1] */
    double angle = 2 * M_PI * checkpoint_random_uniform(r);
    return sqrt(-2 * log(u)) * cos(angle);
}
