/*
 * watch.h - end a rank whose job is broken, by a thread that works while MPI blocks (MPI may
 * wait forever for ranks that are gone)
 */
#ifndef JOB_WATCH_H
#define JOB_WATCH_H

#include "control.h"

/* Call it before MPI starts. Starts a thread that ends the process when mpirun, or its daemon
 * on this host, is gone, because the job cannot continue without it. The thread makes
 * *end_event, an eventfd, readable when a signal asks the job to end. Returns 0 or -errno. */
int job_watch_start(int *end_event);

/* Also ends the process when the peer closes this socket. */
void job_watch_channel(int fd);

/* Ends the process and removes its files: MPI's shared memory, rank 0's socket. */
void job_watch_end(void) __attribute__((noreturn));

/* An orderly end has begun: stops watching the socket. */
void job_watch_relax(void);

#endif
