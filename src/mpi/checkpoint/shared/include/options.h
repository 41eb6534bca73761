/*
 * options.h - the command line of a sub-command, by a table
 */
#ifndef CHECKPOINT_OPTIONS_H
#define CHECKPOINT_OPTIONS_H

#include "command.h"

enum checkpoint_kind {
    CHECKPOINT_FLAG,    /* bool: true */
    CHECKPOINT_NUMBER,  /* int64_t, of least to most, with k, M or G for powers of 1000 */
    CHECKPOINT_REAL,    /* double: finite, of least to most */
    CHECKPOINT_REALS,   /* double[3]: "1x2x3", or "1" for all of them; as REAL */
    CHECKPOINT_EXTENTS, /* int64_t[3]: "2x3x4"; as NUMBER */
    CHECKPOINT_WORD,    /* int: which of `words` */
    CHECKPOINT_TEXT,    /* const char * */
};

struct checkpoint_option {
    const char *name;
    char letter; /* or 0 */
    enum checkpoint_kind kind;
    void *where; /* left as it is if the option is not there */
    double least, most;
    const char *const *words; /* NULL after the last one */
};

/* Options may stand before, between and after the `files` names, which must be there and come
 * to file[]. False: CHECKPOINT_USAGE, and rank 0 has said why. The same on all ranks. */
bool checkpoint_options(const struct checkpoint_world *, const struct checkpoint_command *,
                        int argc, char **argv, const struct checkpoint_option *, size_t count,
                        int files, const char **file);

/* "lime-checkpoint: reason; see lime-checkpoint NAME --help" by rank 0; CHECKPOINT_USAGE. */
__attribute__((format(printf, 3, 4))) int checkpoint_misuse(const struct checkpoint_world *,
                                                            const struct checkpoint_command *,
                                                            const char *format, ...);

#endif
