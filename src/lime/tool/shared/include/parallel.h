/*
 * parallel.h - run a command on many files in parallel, printing results in order
 *
 * Each file is examined by its own process, so the work prints as if it were alone, and a crash
 * costs one file. The output of a file is held in memory until the files before it have been
 * printed. A single file is examined in this process; so is each file for which no process can
 * be started.
 */
#ifndef PARALLEL_H
#define PARALLEL_H

#include "pathlist.h"

struct parallel {
    const struct pathlist *list; /* the files */
    unsigned processors;         /* to use; 0: all */
    bool is_io_bound;      /* the work mostly waits for storage: use 4 processes at least */
    const char *action;    /* for messages and the progress bar */
    const char *separator; /* printed on stdout between the output of two files; or NULL */
    void *context;

    /* Examines a file, normally in a child process. Returns an exit status. */
    int (*work)(void *context, const struct pathlist_item *, unsigned threads);

    /* Prints the replacement for the standard output of a file whose process crashed; `why` has
     * been printed as a message. Or NULL. */
    void (*print_crash)(void *context, const struct pathlist_item *, const char *why);
};

/* Returns the worst exit status; that of a file whose process crashed is TOOL_UNUSABLE. */
int parallel_run(const struct parallel *);

#endif
