/*
 * data.h - the bytes that are written: a function of a seed and of their place; pure.
 *
 * So what was read is compared byte by byte without a copy of what was written, on whatever
 * rank.
 */
#ifndef BENCH_DATA_H
#define BENCH_DATA_H

#include <stdint.h>

struct bench_wrong {
    int64_t bytes; /* how many are wrong */
    int64_t at;    /* the first of them, in the file's data */
    unsigned char expected, found;
};

/* The n bytes from `at` on. */
void bench_data_fill(uint64_t seed, int64_t at, void *data, int64_t n);

/* Compares; what is wrong is added to *wrong, which keeps the lowest place. */
void bench_data_check(uint64_t seed, int64_t at, const void *data, int64_t n,
                      struct bench_wrong *wrong);

#endif
