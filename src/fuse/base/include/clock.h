/* clock.h - seconds, and until when to wait */
#ifndef LIMEFS_CLOCK_H
#define LIMEFS_CLOCK_H

#include <time.h>

/* Of a clock that nobody sets, since some moment. */
double limefs_seconds(void);

/* The same, for conditions that go by CLOCK_MONOTONIC. */
struct timespec limefs_clock_time(double seconds);

#endif
