/* status.h - what a job has done, for people and programs; knows no MPI */
#ifndef JOB_STATUS_H
#define JOB_STATUS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    JOB_LATENCY_STEPS = 8, /* of the histogram, each time that the time doubles */
    JOB_LATENCY_BUCKETS = 8 * 40,
};

/* How long reads, or writes, took. */
struct job_latency {
    uint64_t buckets[JOB_LATENCY_BUCKETS], slowest_us;
};

struct job_counters {
    uint64_t bytes_read, bytes_written, bytes_summed;
    uint64_t requests, errors, in_flight; /* reads, writes, syncs and sums */
    uint64_t writes_in_flight, syncs;
    struct job_latency reads, writes;
};

/* A read, write, sync or sum is sent to the workers, and is done: `opcode` is theirs. */
void job_counters_begin(struct job_counters *, uint16_t opcode);
void job_counters_end(struct job_counters *, uint16_t opcode, uint64_t bytes, bool good,
                      uint64_t us);

/* That many percent took at most so many milliseconds, within a tenth. */
double job_latency_percentile(const struct job_latency *, double percent);

/* Microseconds of a clock that never goes back. */
int64_t job_now_us(void);

struct job_server;

/* JSON of at most cap - 1 bytes, to be freed; NULL: no memory. */
char *job_status_text(const struct job_server *);

#endif
