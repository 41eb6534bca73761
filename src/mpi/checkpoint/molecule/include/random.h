/*
 * random.h - numbers that follow from a seed, a particle and a place in a row only: so each
 * rank makes those that it needs. Pure.
 */
#ifndef CHECKPOINT_RANDOM_H
#define CHECKPOINT_RANDOM_H

#include <stdint.h>

struct checkpoint_random {
    uint64_t key, next;
};

/* A row of numbers of its own for each of them. */
void checkpoint_random_set(struct checkpoint_random *, uint64_t seed, uint64_t particle,
                           uint64_t row);

uint64_t checkpoint_random_word(struct checkpoint_random *);
double checkpoint_random_uniform(struct checkpoint_random *); /* in [0, 1) */
double checkpoint_random_normal(struct checkpoint_random *);  /* mean 0, variance 1 */

#endif
