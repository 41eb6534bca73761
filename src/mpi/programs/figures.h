/*
 * figures.h - what a series of measurements comes to; pure.
 */
#ifndef FIGURES_H
#define FIGURES_H

enum {
    FIGURES_HUMAN_BYTES = 32,
};

double figures_mean(const double *values, int n);

/* The root of the mean square of what separates them from their mean; n > 0. */
double figures_deviation(const double *values, int n);

/* A number of bytes, not negative, with three digits and a unit (kB is 1000 B); into `out`,
 * which has FIGURES_HUMAN_BYTES and is returned. */
const char *figures_human(double bytes, char *out);

#endif
