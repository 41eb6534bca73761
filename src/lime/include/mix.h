/*
 * mix.h - splitmix64 (S. Vigna): words that look random, any of them without those before. It
 * needs nothing else of the library.
 */
#ifndef LIMEFILE_MIX_H
#define LIMEFILE_MIX_H

#include <stdint.h>

/* From one state of the generator to the next one. */
#define MIX64_STEP UINT64_C(0x9e3779b97f4a7c15)

/* What it makes of a state: each bit of that changes half of those of the result, and no two
 * states have the same one. */
static inline uint64_t mix64(uint64_t state)
{
    state = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    state = (state ^ state >> 27) * UINT64_C(0x94d049bb133111eb);
    return state ^ state >> 31;
}

/* A word as a number in [0, 1). */
static inline double mix64_fraction(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

#endif
