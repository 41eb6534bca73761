/* run_command.h - limefs --run: mount, run a command, and unmount when it has ended */
#ifndef LIMEFS_RUN_COMMAND_H
#define LIMEFS_RUN_COMMAND_H

#include "options.h"

enum {
    LIMEFS_RUN_FAILED = 125
}; /* exit status if the command was not run, as that of env(1) */

/* Forks the daemon. In the daemon, returns -1, and in *to_runner a descriptor to which it
 * writes a byte 0 when the mount is ready. In the calling process, returns the exit status for
 * limefs after the command, command->run, and the daemon have ended. Call it before the process
 * opens files that the daemon must not share. */
int limefs_mount_and_run(const struct limefs_command *command, int *to_runner);

#endif
