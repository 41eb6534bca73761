/* parallel.h - run a command on many files in parallel, printing results in order
 *
 * Each file is examined in a child process of its own, so that a crash affects only this file.
 * The child's output is held in memory until the output of earlier files is printed. If the
 * list has only one file, or a child cannot be started, this process examines the file.
 *
 * SIGINT, SIGTERM and SIGHUP end the children; what has finished is printed and counted. The
 * caller then ends the process by the signal. */
#ifndef PARALLEL_H
#define PARALLEL_H

#include "limeverdict.h"
#include "pathlist.h"

struct parallel {
    const struct pathlist *list; /* the files */
    unsigned processors;         /* number of processors to use; 0: all */
    bool is_io_bound;      /* the work mostly waits for storage: use at least 4 processes */
    bool in_process;       /* examine all files in this process, one after another */
    bool is_quiet;         /* drop the output and the messages of good and skipped files */
    const char *action;    /* for messages and the progress bar */
    const char *separator; /* printed on stdout between the output of two files; or NULL */
    void *context;

    /* Examines a file, normally in a child process. */
    enum limefile_verdict (*work)(void *context, const struct pathlist_item *,
                                  unsigned threads);

    /* Prints on stdout a replacement for the output of a child that has crashed. A message with
     * `why` is printed before. */
    void (*print_crash)(void *context, const struct pathlist_item *, const char *why);

    /* Set by parallel_run(). */
    int interrupted; /* 0; or SIGINT, SIGTERM or SIGHUP, which ended it before the last file */
    uint64_t verdicts[LIMEFILE_UNREADABLE + 1]; /* number of examined files, by verdict */
    bool has_printed;                           /* a file has printed on stdout */
};

/* Returns the worst exit status of all files; a file whose child has crashed is unreadable. */
int parallel_run(struct parallel *);

#endif
