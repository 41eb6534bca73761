/* ask.h - limefs-io --stop and --status: questions to a job that runs; without MPI */
#ifndef JOB_ASK_H
#define JOB_ASK_H

#include "options.h"

/* The code to exit with. */
int job_ask(const struct job_options *);

#endif
