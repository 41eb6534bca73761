/* options.h - the command line of limefs-io; knows no MPI */
#ifndef JOB_OPTIONS_H
#define JOB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    JOB_HINTS_MAX = 64,
};

struct job_options {
    enum job_mode { JOB_NO_MODE, JOB_SERVE, JOB_STOP, JOB_STATUS } mode;
    const char *socket;
    int64_t stripe; /* 0: what the file says */
    char *hint_keys[JOB_HINTS_MAX], *hint_values[JOB_HINTS_MAX];
    int hints;
    int ready, lifeline; /* descriptors of rank 0, or -1 */
    bool json;
};

/* -1: go on; else the code to exit with: words have been said. */
int job_options_parse(struct job_options *, int argc, char **argv);

/* limefs-io --stop and --status (ask.c): questions to a job that runs, without MPI. The code to
 * exit with. */
int job_ask(const struct job_options *);

#endif
