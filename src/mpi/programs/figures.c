/* figures.c - what a series of measurements comes to */
#include "figures.h"

#include <math.h>
#include <stdio.h>

double figures_mean(const double *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum / n;
}

/* Two passes: the difference of two nearly equal sums of squares would be noise. */
double figures_deviation(const double *values, int n)
{
    double mean = figures_mean(values, n), sum = 0;
    for (int i = 0; i < n; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return sqrt(sum / n);
}

const char *figures_human(double bytes, char *out)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0, last = (int)(sizeof units / sizeof *units) - 1;
    while (bytes >= 999.5 && unit < last) { /* 999.5 would be shown as 1000 */
        bytes /= 1000;
        unit++;
    }
    int digits = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
    snprintf(out, FIGURES_HUMAN_BYTES, "%.*f %s", digits, bytes, units[unit]);
    return out;
}
