/*
 * watch.h - what ends a rank out of order, watched for beside MPI, which may be waiting for
 * ever for ranks that are gone
 */
#ifndef JOB_WATCH_H
#define JOB_WATCH_H

#include "control.h"

/* Before MPI starts: blocks the signals that mean the end. *signals: a descriptor for them. */
int job_watch_signals(int *signals);

/* Asks for a signal when mpirun, or its daemon on this host, is gone: without it there is no
 * job. */
void job_watch_parent(void);
bool job_watch_parent_is_gone(void);

/* Ends the process with what it would leave behind: MPI's shared memory, and what `remove`,
 * if there is one, removes. */
void job_watch_end(void) __attribute__((noreturn));
void job_watch_on_end(void (*remove)(void));

/* A thread that ends the process when the parent is gone or the channel closed, and makes
 * *wants_end, an eventfd, readable when a signal comes. -errno. */
int job_watch_start(int channel_fd, int signals, int *wants_end);

/* The end is near and in order: a closed channel means nothing any more. */
void job_watch_relax(void);

#endif
