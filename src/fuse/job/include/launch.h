/*
 * launch.h - a job of the daemon's own, behind a keeper.
 *
 * The keeper is a process between the daemon and mpirun. It adopts whatever mpirun leaves
 * behind, so when the job ends, or the daemon does in whatever way, the keeper kills every
 * process of the job and removes its folder. The keeper lives as long as the daemon holds the
 * lifeline, and the job as long as the keeper.
 */
#ifndef LIMEFS_LAUNCH_H
#define LIMEFS_LAUNCH_H

#include "limefs.h"

#include <limits.h>

struct limefs_launch {
    pid_t keeper; /* 0: none */
    int lifeline; /* the keeper ends when this is closed */
    int lock;     /* on the folder, as long as this process lives */
    int words;    /* what the job says, line by line: "ready", or a message */
    char dir[64]; /* all of its files */
    char socket[96];
};

/* Looks for the programs that start a job, if one is requested. Returns 0, or -ENOENT after a
 * message that names the one that is missing. */
int limefs_launch_check(const struct limefs_options *);

/* 0 or -errno. */
int limefs_launch(struct limefs_launch *, const struct limefs_options *);

/* Ends the job, and waits until all of it is gone. */
void limefs_launch_end(struct limefs_launch *);

/* The keeper's main(): limefs --keeper DIR PROGRAM ARGUMENT... */
int limefs_keeper_main(int argc, char *argv[]);

/* Removes what daemons that were killed together with their keeper have left. */
void limefs_launch_sweep(void);

#endif
