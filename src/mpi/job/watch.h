/*
 * watch.h - what ends a rank out of order, watched for beside MPI, which may be waiting for
 * ever for ranks that are gone
 */
#ifndef JOB_WATCH_H
#define JOB_WATCH_H

#include "control.h"

/* Before MPI starts: a thread that ends the process when mpirun, or its daemon on this host, is
 * gone, because there is no job without it; and makes *wants_end, an eventfd, readable when a
 * signal says that the job is to end. -errno. */
int job_watch_start(int *wants_end);

/* The process ends also when this is closed. */
void job_watch_channel(int fd);

/* Ends the process with what it would leave behind: MPI's shared memory, and rank 0's socket.
 */
void job_watch_end(void) __attribute__((noreturn));

/* The end is near and in order: a closed channel means nothing any more. */
void job_watch_relax(void);

#endif
