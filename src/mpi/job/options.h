/* options.h - the command line of limefs-io; no MPI */
#ifndef JOB_OPTIONS_H
#define JOB_OPTIONS_H

#include "limejob.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    JOB_HINTS_MAX = 64,
};

struct job_options {
    enum job_mode { JOB_NO_MODE, JOB_SERVE, JOB_STOP, JOB_STATUS } mode;
    const char *socket_path;
    int64_t stripe_bytes; /* 0: as the file system states */
    char *hint_keys[JOB_HINTS_MAX], *hint_values[JOB_HINTS_MAX];
    int hint_count;
    enum limejob_io io;
    int ready_fd;    /* rank 0 writes "ready" to it; -1: none */
    int lifeline_fd; /* rank 0's: the job ends when the other end is closed; -1: none */
    bool json;
};

/* Returns -1 to continue, or the exit status; after an error a message has been printed. */
int job_options_parse(struct job_options *, int argc, char **argv);

/* limefs-io --stop and --status (query.c): stops or queries a running job, without MPI. Returns
 * the exit status. */
int job_query(const struct job_options *);

#endif
