/*
 * options.h - sub-commands, and the command line of each by a table
 */
#ifndef CHECKPOINT_OPTIONS_H
#define CHECKPOINT_OPTIONS_H

#include "option.h"
#include "world.h"

struct checkpoint_command {
    const char *name, *arguments; /* "[OPTION]... TXT C" */
    const char *summary;          /* a line without a full stop */
    const char *help;             /* what it does and its options, for --help */
    /* Collective, and returns the same exit status on each rank. argv[0] is the name. */
    int (*run)(const struct checkpoint_world *, int argc, char **argv);
};

/* Each is a file cmd_NAME.c. */
extern const struct checkpoint_command checkpoint_generate, checkpoint_import,
    checkpoint_restart, checkpoint_export, checkpoint_compare, checkpoint_info, checkpoint_run;

/* Options may stand before, between and after the `files` names, which must be there and come
 * to file[]. False: CHECKPOINT_USAGE, and rank 0 has said why. The same on all ranks. */
bool checkpoint_options(const struct checkpoint_world *, const struct checkpoint_command *,
                        int argc, char **argv, const struct option_rule *, int files,
                        const char **file);

/* "lime-checkpoint: reason; see lime-checkpoint NAME --help" by rank 0; CHECKPOINT_USAGE. */
__attribute__((format(printf, 3, 4))) int checkpoint_misuse(const struct checkpoint_world *,
                                                            const struct checkpoint_command *,
                                                            const char *format, ...);

#endif
