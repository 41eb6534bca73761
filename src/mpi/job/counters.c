/* counters.c - how long reads took: a histogram of fixed size, its steps a tenth each */
#include "status.h"

#include <time.h>

int64_t job_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Up to 8 us one bucket each; then eight for each power of two. */
static int bucket_of(uint64_t us)
{
    if (us < JOB_LATENCY_STEPS)
        return (int)us;
    int power = 63 - __builtin_clzll(us); /* at least 3 */
    int bucket =
        (power - 2) * JOB_LATENCY_STEPS + (int)((us >> (power - 3)) & (JOB_LATENCY_STEPS - 1));
    return bucket < JOB_LATENCY_BUCKETS ? bucket : JOB_LATENCY_BUCKETS - 1;
}

/* The first microsecond that is too long for it. */
static uint64_t end_of(int bucket)
{
    if (bucket < JOB_LATENCY_STEPS)
        return (uint64_t)bucket + 1;
    int power = bucket / JOB_LATENCY_STEPS + 2;
    return (uint64_t)(JOB_LATENCY_STEPS + bucket % JOB_LATENCY_STEPS + 1) << (power - 3);
}

void job_counters_note(struct job_counters *counters, uint64_t us)
{
    counters->latency[bucket_of(us)]++;
    if (us > counters->slowest_us)
        counters->slowest_us = us;
}

double job_counters_percentile(const struct job_counters *counters, double percent)
{
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < JOB_LATENCY_BUCKETS; i++)
        all += counters->latency[i];
    for (int i = 0; i < JOB_LATENCY_BUCKETS && all; i++) {
        seen += counters->latency[i];
        if ((double)seen >= (double)all * percent / 100) {
            uint64_t end = end_of(i);
            return (double)(end < counters->slowest_us ? end : counters->slowest_us) / 1000;
        }
    }
    return 0;
}
