/*
 * watchdog.h - a thread that ends a rank's process if the job is broken: MPI may wait forever
 * for ranks that are gone
 */
#ifndef JOB_WATCHDOG_H
#define JOB_WATCHDOG_H

#include "control.h"

/* Call this before MPI starts. Starts a thread that ends the process when mpirun, or its daemon
 * on this host, is gone, because the job cannot continue without it. The thread makes
 * *end_event, an eventfd, readable when a signal asks the job to end. Returns 0 or -errno. */
int job_watchdog_start(int *end_event);

/* Makes the thread also end the process when the peer closes this socket. */
void job_watchdog_watch(int fd);

/* Ends the process and removes its files: MPI's shared memory, rank 0's socket. */
void job_watchdog_abort(void) __attribute__((noreturn));

/* Stops watching the socket. Call this when an orderly end has begun. */
void job_watchdog_stop(void);

#endif
