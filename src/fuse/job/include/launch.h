/*
 * launch.h - start and end the daemon's own job, under a supervisor process.
 *
 * The supervisor is a child of the daemon and the parent of mpirun. It adopts all processes
 * that mpirun leaves behind on this host. When mpirun ends, or the daemon ends in any way, the
 * supervisor kills the job's processes and removes its directory. It reads a pipe, its
 * lifeline, whose write end only the daemon holds: when the daemon ends, the kernel closes the
 * write end. In the same way, the job notices the end of the supervisor by a second lifeline.
 */
#ifndef LIMEFS_LAUNCH_H
#define LIMEFS_LAUNCH_H

#include "limefs.h"

#include <limits.h>

struct limefs_launch {
    pid_t supervisor; /* process id; 0: none */
    int lifeline;     /* write end of a pipe; the supervisor ends when the daemon closes it */
    int lock;         /* the file `lock` in dir; it is locked as long as the daemon lives */
    int output;       /* a pipe with the job's output, in lines: "ready", or a message */
    char dir[64];     /* directory for all files of the job on this host */
    char socket[96];  /* path of the socket at which the job listens */
};

/* If the options request a job, checks that mpirun and limefs-io are installed, and that this
 * host can run that many ranks. Returns false and stores the problem if not. */
bool limefs_launch_check(const struct limefs_options *, char problem[LIMEFS_REASON_MAX]);

/* Starts a supervisor with a job. Returns 0 or -errno; an error leaves nothing behind. */
int limefs_launch_start(struct limefs_launch *, const struct limefs_options *);

/* Ends the job, and waits until its supervisor has ended. Kills a supervisor that hangs. */
void limefs_launch_end(struct limefs_launch *);

/* The supervisor's main(): limefs --supervisor DIR PROGRAM ARGUMENT... */
int limefs_supervisor_main(int argc, char *argv[]);

/* Removes this user's job directories whose daemon no longer runs. */
void limefs_launch_remove_stale(void);

#endif
