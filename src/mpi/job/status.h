/* status.h - what a job has done, for people and programs; knows no MPI */
#ifndef JOB_STATUS_H
#define JOB_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct job_counters {
    uint64_t bytes_read, bytes_written;
    uint64_t requests, errors, in_flight; /* reads, writes and syncs */
    uint64_t writes_in_flight, syncs;
};

/* A read, write or sync is sent to the workers, and is done: `opcode` is theirs. */
void job_counters_begin(struct job_counters *, uint16_t opcode);
void job_counters_end(struct job_counters *, uint16_t opcode, uint64_t bytes, bool good);

/* Microseconds of a clock that never goes back. */
int64_t job_now_us(void);

struct job_server;

/* JSON of at most cap - 1 bytes, to be freed; NULL: no memory. */
char *job_status_text(const struct job_server *);

#endif
