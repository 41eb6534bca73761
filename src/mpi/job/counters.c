/* counters.c - what was done, and how long it took: a histogram of fixed size, its steps a
 * tenth each */
#include "control.h"
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

static void note(struct job_latency *latency, uint64_t us)
{
    latency->buckets[bucket_of(us)]++;
    if (us > latency->slowest_us)
        latency->slowest_us = us;
}

void job_counters_begin(struct job_counters *counters, uint16_t opcode)
{
    counters->in_flight++;
    counters->writes_in_flight += opcode == JOB_WRITE;
}

void job_counters_end(struct job_counters *counters, uint16_t opcode, uint64_t bytes, bool good,
                      uint64_t us)
{
    counters->in_flight--;
    counters->requests++;
    counters->errors += !good;
    if (opcode == JOB_READ) {
        counters->bytes_read += bytes;
        note(&counters->reads, us);
    } else if (opcode == JOB_WRITE) {
        counters->writes_in_flight--;
        counters->bytes_written += bytes;
        note(&counters->writes, us);
    } else if (opcode == JOB_SUM) {
        counters->bytes_summed += bytes;
    } else if (opcode == JOB_SYNC) {
        counters->syncs++;
    }
}

double job_latency_percentile(const struct job_latency *latency, double percent)
{
    uint64_t all = 0, seen = 0;
    for (int i = 0; i < JOB_LATENCY_BUCKETS; i++)
        all += latency->buckets[i];
    for (int i = 0; i < JOB_LATENCY_BUCKETS && all; i++) {
        seen += latency->buckets[i];
        if ((double)seen >= (double)all * percent / 100) {
            uint64_t end = end_of(i);
            return (double)(end < latency->slowest_us ? end : latency->slowest_us) / 1000;
        }
    }
    return 0;
}
