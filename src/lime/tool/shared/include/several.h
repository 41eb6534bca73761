/*
 * several.h - the same work on each file of a list, on several files at once
 *
 * Each worker is a process, so that the work can print as if it were alone, and a file that
 * ends its worker ends no other's. What they say comes out in the order of the list, all of a
 * file before anything of the next one. A single file is worked on in this process, as are all
 * of them, one after the other, if no process can be had.
 */
#ifndef SEVERAL_H
#define SEVERAL_H

#include "progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEVERAL_RESULT_MAX = 256 }; /* bytes */

struct several {
    size_t count;
    unsigned processors; /* that may be used; 0: all */
    bool waits;          /* the work is little but waiting: more files than processors */
    bool whole;          /* what a file prints on stdout comes out at its end, or not at all */
    const char *action;  /* what the progress bar begins with */
    const char *between; /* on stdout, between two files that print anything there; or NULL */
    size_t result_size;
    void *context;

    const char *(*name)(void *context, size_t i);

    /* What it is in the progress bar; NULL: all are the same. */
    uint64_t (*size)(void *context, size_t i);

    /* In a worker. `threads`: that this file may use. What it writes to *result, which is zero
     * to begin with, reaches done(). Returns an exit status. */
    int (*work)(void *context, size_t i, unsigned threads, struct progress *, void *result);

    /* In this process, if its worker was ended before it was done: prints what stands in the
     * place of its stdout. `why` has been told. Or NULL. */
    void (*lost)(void *context, size_t i, const char *why);

    /* In this process, in the order of the list, after all that the file has printed. Returns
     * an exit status, as a rule the one it is given. `result` is zero of a file that was lost.
     * Or NULL. */
    int (*done)(void *context, size_t i, int status, const void *result);
};

/* The worst exit status of all. */
int several_run(const struct several *);

/* For the work, while it follows a file's records, of which there are so many by now: what
 * takes much memory waits in a worker until others are done, at the latest until it is its
 * turn. */
void several_need_room(uint64_t records);

#endif
