/* statistics.c - what a series of measurements comes to */
#include "statistics.h"

#include <math.h>

/* The k-th smallest, from 0: the one with as many below it. Series are short. */
static double smallest(const double *values, int n, int k)
{
    for (int i = 0; i < n; i++) {
        int below = 0, equal = 0;
        for (int j = 0; j < n; j++) {
            below += values[j] < values[i];
            equal += values[j] == values[i];
        }
        if (below <= k && k < below + equal)
            return values[i];
    }
    return values[0];
}

double bench_median(const double *values, int n)
{
    double upper = smallest(values, n, n / 2);
    return n % 2 ? upper : (smallest(values, n, n / 2 - 1) + upper) / 2;
}

void bench_statistics_of(const double *values, int n, struct bench_statistics *s)
{
    double sum = 0, squares = 0;
    s->min = s->max = values[0];
    for (int i = 0; i < n; i++) {
        sum += values[i];
        s->min = fmin(s->min, values[i]);
        s->max = fmax(s->max, values[i]);
    }
    s->mean = sum / n;
    for (int i = 0; i < n; i++)
        squares += (values[i] - s->mean) * (values[i] - s->mean);
    s->deviation = n > 1 ? sqrt(squares / (n - 1)) : 0;
    s->median = bench_median(values, n);
}
