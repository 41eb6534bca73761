/*
 * launch.h - start and end the daemon's own job, under a supervisor process.
 *
 * The supervisor is a child of the daemon and the parent of mpirun. It adopts all processes
 * that mpirun leaves behind on this host. When mpirun ends, or the daemon ends in any way, the
 * supervisor kills them and removes the job's directory. It notices the daemon's end because
 * only the daemon holds the other end of its lifeline, a pipe. The job has a lifeline to the
 * supervisor.
 */
#ifndef LIMEFS_LAUNCH_H
#define LIMEFS_LAUNCH_H

#include "limefs.h"

#include <limits.h>

struct limefs_launch {
    pid_t supervisor; /* process id; 0: none */
    int lifeline;     /* a pipe; the supervisor ends when it is closed */
    int lock;         /* the locked file `lock` in dir: shows that this process lives */
    int output;       /* a pipe with the job's output, in lines: "ready", or a message */
    char dir[64];     /* directory of all files of the job */
    char socket[96];  /* path of the socket at which the job listens */
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

/* Removes this user's job directories whose daemon and supervisor were both killed. */
void limefs_launch_remove_stale(void);

#endif
