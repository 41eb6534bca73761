/* parallel.h - run a command on many files in parallel, printing results in order
 *
 * Each file is examined in a child process of its own, so that a crash affects only this file.
 * The child's output is held in memory until the output of earlier files is printed. If the
 * list has only one file, or a child cannot be started, this process examines the file. */
#ifndef PARALLEL_H
#define PARALLEL_H

#include "pathlist.h"

struct parallel {
    const struct pathlist *list; /* the files */
    unsigned processors;         /* number of processors to use; 0: all */
    bool is_io_bound;      /* the work mostly waits for storage: use at least 4 processes */
    const char *action;    /* for messages and the progress bar */
    const char *separator; /* printed on stdout between the output of two files; or NULL */
    void *context;

    /* Examines a file, normally in a child process. Returns an exit status. */
    int (*work)(void *context, const struct pathlist_item *, unsigned threads);

    /* Prints on stdout a replacement for the output of a child that has crashed. A message with
     * `why` is printed before. NULL: no replacement. */
    void (*print_crash)(void *context, const struct pathlist_item *, const char *why);
};

/* Returns the worst exit status of all files: TOOL_UNUSABLE if a child has crashed. */
int parallel_run(const struct parallel *);

#endif
