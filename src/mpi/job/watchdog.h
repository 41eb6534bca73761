/*
 * watchdog.h - end the process of a rank whose job is broken, from a thread of its own, because
 * MPI may wait forever for ranks that are gone
 */
#ifndef JOB_WATCHDOG_H
#define JOB_WATCHDOG_H

#include "control.h"

/* Call it before MPI starts. Starts a thread that ends the process when mpirun, or its daemon
 * on this host, is gone, because the job cannot continue without it. The thread makes
 * *end_event, an eventfd, readable when a signal asks the job to end. Returns 0 or -errno. */
int job_watchdog_start(int *end_event);

/* Also ends the process when the peer closes this socket. */
void job_watchdog_watch(int fd);

/* Ends the process and removes its files: MPI's shared memory, rank 0's socket. */
void job_watchdog_abort(void) __attribute__((noreturn));

/* Stops watching the socket, when an orderly end has begun. */
void job_watchdog_stop(void);

#endif
