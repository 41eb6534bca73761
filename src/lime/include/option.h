/*
 * option.h - the options of a command line by a table, read and refused alike in every
 * program. It needs nothing else of the library.
 */
#ifndef LIMEFILE_OPTION_H
#define LIMEFILE_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_END,         /* behind the last rule */
    OPTION_FLAG,        /* bool: true */
    OPTION_NO,          /* bool: false */
    OPTION_LAST,        /* bool: true; what follows is not read */
    OPTION_TEXT,        /* const char *: within argv */
    OPTION_UNSIGNED,    /* unsigned, from `least` to `most`, as all numbers */
    OPTION_NUMBER,      /* int64_t */
    OPTION_COUNT,       /* int64_t, with k, M, G or T for powers of 1000 */
    OPTION_SIZE,        /* int64_t, with k, M, G or T for powers of 1024 */
    OPTION_REAL,        /* double: finite */
    OPTION_REALS,       /* double[count]: "1x2x3", or "1" for all of them */
    OPTION_EXTENTS,     /* int64_t[count]: "2x3x4" */
    OPTION_WORD,        /* int: which of `words` */
    OPTION_CALL,        /* take(context, NULL) */
    OPTION_CALL_TEXT,   /* take(context, text) */
    OPTION_CALL_EITHER, /* take(context, the text of "--name=text", or NULL) */
};

/* An option, --name or -letter. */
struct option_rule {
    const char *name; /* or NULL */
    char letter;      /* or 0 */
    enum option_kind kind;
    void *value; /* left as it is if the option is not given */
    double least, most;
    int count;
    const char *const *words; /* NULL behind the last one */
    const char *expected;     /* what a message says of a value; NULL: derived */
    /* Returns 0, or a positive number after a message of its own. */
    int (*take)(const void *context, char *text);
};

enum {
    OPTION_WHY_BYTES = 4096,
    /* What limefile_options_read() returns. */
    OPTION_ASKS_HELP = -1, /* --help, which needs no rule */
    OPTION_IS_WRONG = -2, /* why[] says what: "-j: invalid value '0' (a number from 1 to 64)" */
};

/* Reads the options of argv, at most 40; another word goes to operand() in its place
 * or, without one, remains behind optind. Returns 0, a number above, or what take() or
 * operand() returned. why[] may hold any bytes of argv (text.h). */
int limefile_options_read(const struct option_rule *, int argc, char **argv,
                          int (*operand)(const void *context, const char *word),
                          const void *context, char why[OPTION_WHY_BYTES]);

/* Reads the value of one option, not of a FLAG or CALL, where the rule says. False: why[] says
 * "GIVEN: invalid value 'TEXT' (0 to 1G)". */
bool limefile_option_value(const struct option_rule *, const char *given, const char *text,
                           char why[OPTION_WHY_BYTES]);

/* Fills text, of so many bytes, with "unknown option '--foo'", "option '--bar' requires a
 * value", "option '--baz' takes no value" or "option '--b' is ambiguous (--bar, --baz)". Call
 * it after getopt_long(argc, argv, shorts, longs, ...) has returned '?' or ':', with the same
 * tables. */
void limefile_option_error(char *text, size_t bytes, char *const *argv, const char *shorts,
                           const struct option *longs);

#endif
