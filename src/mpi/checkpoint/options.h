/* options.h - sub-commands, and parsing of their command lines by tables */
#ifndef CHECKPOINT_OPTIONS_H
#define CHECKPOINT_OPTIONS_H

#include "option.h"
#include "world.h"

struct checkpoint_command {
    const char *name, *arguments; /* arguments: like "[OPTION]... TXT C" */
    const char *summary;          /* one line without a full stop */
    const char *help;             /* description and options, for --help */
    /* Collective; returns the same exit status on all ranks. argv[0] is the name. */
    int (*run)(const struct checkpoint_world *, int argc, char **argv);
};

/* checkpoint_NAME is defined in cmd_NAME.c. */
extern const struct checkpoint_command checkpoint_generate, checkpoint_import,
    checkpoint_restart, checkpoint_export, checkpoint_compare, checkpoint_info, checkpoint_run;

/* Parses a command line of options and exactly `files` file names, which may be mixed, and sets
 * file[] to the names. On an error, rank 0 prints a message, and all ranks return false; the
 * caller must then return CHECKPOINT_USAGE. If the first argument is --complete, rank 0 prints
 * candidates (complete.h), and all return false. */
bool checkpoint_parse_options(const struct checkpoint_world *,
                              const struct checkpoint_command *, int argc, char **argv,
                              const struct option_rule *, int files, const char **file);

/* Rank 0 prints "lime-checkpoint: NAME: reason; see ... --help". Returns CHECKPOINT_USAGE. */
__attribute__((format(printf, 3, 4))) int checkpoint_usage_error(
    const struct checkpoint_world *, const struct checkpoint_command *, const char *format,
    ...);

#endif
