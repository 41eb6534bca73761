/* splitmix64.h - the random number generator splitmix64 (S. Vigna), with access to any element
 * of the sequence. Uses no other part of the library. */
#ifndef LIMEFILE_SPLITMIX64_H
#define LIMEFILE_SPLITMIX64_H

#include <stdint.h>

/* The sum of a state of the generator and this number is the next state. */
#define MIX64_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Returns the random word of a state. A change of one bit of the state changes about half of
 * the word's bits; no two states have the same word. */
static inline uint64_t mix64(uint64_t state)
{
    state = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    state = (state ^ state >> 27) * UINT64_C(0x94d049bb133111eb);
    return state ^ state >> 31;
}

/* Converts a random word to a number in [0, 1). */
static inline double mix64_fraction(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

#endif
