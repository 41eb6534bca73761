/* options.h - the command line of limefs */
#ifndef LIMEFS_OPTIONS_H
#define LIMEFS_OPTIONS_H

#include "limefs.h"

#include <fuse_lowlevel.h>

struct limefs_command {
    char *source;                  /* as given; owned */
    struct fuse_cmdline_opts fuse; /* fuse.mountpoint is owned */
    struct fuse_args args;         /* what is left for fuse_session_new(); owned */
};

/* Reads the command line into *command and *options. 0 to go on; 1 when all is done (--help,
 * --version); -1 after a message about what is wrong. */
int limefs_options_read(int argc, char *argv[], struct limefs_command *command,
                        struct limefs_options *options);

/* Prints libfuse's message about a wrong command line, in the form of limefs's. Returns -1. */
int limefs_options_complain(const char *from_libfuse);

/* Adds the mount options that follow from the source's absolute path. 0 or -ENOMEM. */
int limefs_options_finish(struct limefs_command *command, bool rw, const char *source);

void limefs_options_release(struct limefs_command *command, struct limefs_options *options);

#endif
