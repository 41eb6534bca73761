/*
 * values.h - parse and validate the values of limefs's -o options.
 *
 * A value that is not valid is refused before anything is mounted; one that has no effect is
 * warned of.
 */
#ifndef LIMEFS_VALUES_H
#define LIMEFS_VALUES_H

#include "limefs.h"

enum {
    LIMEFS_WRONG_MAX = 512, /* bytes of a message */
    LIMEFS_RANKS_MAX = 4096,
    LIMEFS_RANKS_EACH = 16, /* for each processor, if mpirun= is not given */
};

enum limefs_value {
    LIMEFS_VALUE_READAHEAD,
    LIMEFS_VALUE_WINDOW,
    LIMEFS_VALUE_EXTENT,
    LIMEFS_VALUE_FORWARD_FROM,
    LIMEFS_VALUE_STRIPE,
    LIMEFS_VALUE_RANKS,
    LIMEFS_VALUE_MAX_OPEN,
    LIMEFS_VALUE_MAX_READ,
    LIMEFS_VALUE_MAX_THREADS,
    LIMEFS_VALUE_MAX_IDLE_THREADS,
    LIMEFS_VALUE_ATTR_TIMEOUT,
    LIMEFS_VALUE_ENTRY_TIMEOUT,
    LIMEFS_VALUE_JOB_TIMEOUT,
    LIMEFS_VALUE_VERIFY,
    LIMEFS_VALUE_MKDIR,
    LIMEFS_VALUE_JOB,
    LIMEFS_VALUE_MPIRUN,
    LIMEFS_VALUES,
};

/* The texts as given; NULL: not given. limefs_values_release() frees them. */
struct limefs_values {
    char *text[LIMEFS_VALUES];
};

/* Reads those that are given into *options. Returns 0, or -1 and fills wrong with a message. */
int limefs_values_read(struct limefs_values *, struct limefs_options *options,
                       char wrong[LIMEFS_WRONG_MAX]);

/* True if arg is one of our options without the value it requires, or with one that it does not
 * take; fills wrong with a message. */
bool limefs_values_misused(const char *arg, char wrong[LIMEFS_WRONG_MAX]);

void limefs_values_release(struct limefs_values *);

#endif
