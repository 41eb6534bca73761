/*
 * command.h - a sub-command
 */
#ifndef CHECKPOINT_COMMAND_H
#define CHECKPOINT_COMMAND_H

#include "world.h"

struct checkpoint_command {
    const char *name, *arguments; /* "[OPTION]... TXT C" */
    const char *summary;          /* a line without a full stop */
    const char *help;             /* what it does and its options, for --help */
    /* Collective, and returns the same exit status on each rank. argv[0] is the name. */
    int (*run)(const struct checkpoint_world *, int argc, char **argv);
};

#endif
