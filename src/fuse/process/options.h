/* options.h - parse the command line of limefs */
#ifndef LIMEFS_OPTIONS_H
#define LIMEFS_OPTIONS_H

#include "limefs.h"

#include <fuse_lowlevel.h>

struct limefs_command {
    char *source;         /* as given; owned */
    bool over_mount;      /* the mount point may be a mount */
    char **run;           /* command of --run and its arguments; NULL: not given */
    char *new_mountpoint; /* absolute path, if made for --run; the caller removes it; owned */
    struct fuse_cmdline_opts fuse; /* fuse.mountpoint is owned */
    struct fuse_args args;         /* arguments for fuse_session_new(); owned */
};

/* Parses the command line into *command and *options. Returns 0 to continue, 1 after --help or
 * --version, -1 after it logged what is wrong. The caller releases both in any case. */
int limefs_options_parse(int argc, char *argv[], struct limefs_command *command,
                         struct limefs_options *options);

/* Returns the index of the argument --run, or argc. What follows is a command. */
int limefs_options_find_run(int argc, char *const *argv);

/* Prints candidates for the last argument (complete.h). */
void limefs_options_complete(int count, char *const *arguments);

/* Logs libfuse's message about a wrong command line in the wording of limefs. Returns -1. */
int limefs_options_report_error(const char *libfuse_message);

/* Adds the mount options that depend on the source's absolute path. Returns 0 or -ENOMEM. */
int limefs_options_add_source(struct limefs_command *command, bool rw, const char *source);

void limefs_options_release(struct limefs_command *command, struct limefs_options *options);

#endif
