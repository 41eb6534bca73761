/* status.h - what a job has done, for people and programs; knows no MPI */
#ifndef JOB_STATUS_H
#define JOB_STATUS_H

#include <stdint.h>

enum {
    JOB_LATENCY_STEPS = 8, /* of the histogram, each time that the time doubles */
    JOB_LATENCY_BUCKETS = 8 * 40,
};

struct job_counters {
    uint64_t bytes_read, requests, errors, in_flight;
    uint64_t latency[JOB_LATENCY_BUCKETS], slowest_us;
};

/* A read has been answered. */
void job_counters_note(struct job_counters *, uint64_t us);

/* That many percent of the reads took at most so many milliseconds, within a tenth. */
double job_counters_percentile(const struct job_counters *, double percent);

/* Microseconds of a clock that never goes back. */
int64_t job_now_us(void);

struct job_server;

/* JSON of at most cap - 1 bytes, to be freed; NULL: no memory. */
char *job_status_text(const struct job_server *);

#endif
