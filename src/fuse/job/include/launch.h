/*
 * launch.h - start and end a job of the daemon's own, under a supervisor process.
 *
 * The supervisor is a process between the daemon and mpirun. It adopts all processes that
 * mpirun leaves behind. When the job ends, or the daemon ends in any way, the supervisor kills
 * every process of the job and removes its directory. The supervisor lives while the daemon
 * holds the lifeline open, and the job lives while the supervisor does.
 */
#ifndef LIMEFS_LAUNCH_H
#define LIMEFS_LAUNCH_H

#include "limefs.h"

#include <limits.h>

struct limefs_launch {
    pid_t supervisor; /* process id; 0: none */
    int lifeline;     /* a pipe; the supervisor ends when it is closed */
    int lock;         /* on the directory, while this process lives */
    int output;       /* a pipe with the job's output, in lines: "ready", or a message */
    char dir[64];     /* directory of all files of the job */
    char socket[96];
};

/* Checks that the programs that start a job are installed, if one is requested. Returns 0, or
 * -ENOENT after a message that names the missing one. */
int limefs_launch_check(const struct limefs_options *);

/* Starts a supervisor with a job. Returns 0 or -errno; after an error nothing remains. */
int limefs_launch_start(struct limefs_launch *, const struct limefs_options *);

/* Ends the job, and waits until all of it has gone. */
void limefs_launch_end(struct limefs_launch *);

/* The supervisor's main(): limefs --supervisor DIR PROGRAM ARGUMENT... */
int limefs_supervisor_main(int argc, char *argv[]);

/* Removes the directories of daemons that were killed together with their supervisors. */
void limefs_launch_remove_stale(void);

#endif
