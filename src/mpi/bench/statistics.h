/*
 * statistics.h - what a series of measurements comes to; pure
 */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

struct bench_statistics {
    double mean, min, max, median;
    double deviation; /* of the sample: n - 1; 0 of one value */
};

/* n > 0; the values are left as they are. */
void bench_statistics_of(const double *values, int n, struct bench_statistics *);

double bench_median(const double *values, int n);

#endif
