/*
 * size.h - numbers of the command line; pure
 */
#ifndef BENCH_SIZE_H
#define BENCH_SIZE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BENCH_SIZE_TEXT = 32,
};

/* A whole number, which k, M, G or T multiply by powers of 1024. False: it is none, or is not
 * between least and most. */
bool bench_size_parse(const char *text, int64_t least, int64_t most, int64_t *value);

/* The same without units. */
bool bench_number_parse(const char *text, int64_t least, int64_t most, int64_t *value);

/* Seconds, as "1.5"; at most a day. */
bool bench_seconds_parse(const char *text, double *value);

/* "16x8x8x4": exactly n numbers of at least 1. */
bool bench_extents_parse(const char *text, int n, int *extents);

/* "64.0 MB" (10^6), into `text`, which is returned. */
const char *bench_size_text(double bytes, char text[BENCH_SIZE_TEXT]);

#endif
