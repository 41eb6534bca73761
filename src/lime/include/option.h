/* option.h - parse command line options by a table, with the same messages in every program.
 * Uses no other part of the library but suggest.h. */
#ifndef LIMEFILE_OPTION_H
#define LIMEFILE_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

enum option_kind {
    OPTION_END,           /* after the last rule */
    OPTION_FLAG,          /* bool: true */
    OPTION_FLAG_OFF,      /* bool: false */
    OPTION_STOP,          /* bool: true, and the rest of the line is not parsed */
    OPTION_TEXT,          /* const char *: pointer into argv */
    OPTION_UNSIGNED,      /* unsigned; like all numbers, from `least` to `most` */
    OPTION_NUMBER,        /* int64_t */
    OPTION_COUNT,         /* int64_t, with k, M, G or T for powers of 1000 */
    OPTION_SIZE,          /* int64_t, with k, M, G or T for powers of 1024 */
    OPTION_REAL,          /* double: finite */
    OPTION_REALS,         /* double[count]: "1x2x3", or "1" for all of them */
    OPTION_EXTENTS,       /* int64_t[count]: "2x3x4" */
    OPTION_WORD,          /* int: index in `words` */
    OPTION_CALL,          /* handle(context, NULL) */
    OPTION_CALL_TEXT,     /* handle(context, text) */
    OPTION_CALL_OPTIONAL, /* handle(context, the text of "--name=text", or NULL) */
};

/* An option, --name or -letter or both. */
struct option_rule {
    const char *name; /* or NULL */
    char letter;      /* or 0 */
    enum option_kind kind;
    void *value; /* unchanged if the option is not given */
    double least, most;
    int count;                /* with `words`, more than 1: several, with commas */
    const char *const *words; /* ends with NULL; of OPTION_CALL*: for completion only */
    const char *expected;     /* valid values, for messages; NULL: derived from the rule */
    /* Returns 0, or a positive number after printing a message. */
    int (*handle)(const void *context, char *text);
};

/* The words of a rule: OPTION_WORDS("md5", "sha256") */
#define OPTION_WORDS(...)          \
    .words = (const char *const[]) \
    {                              \
        __VA_ARGS__, NULL          \
    }

enum {
    OPTION_ERROR_BYTES = 4096,
    /* Results of limefile_options_parse(). */
    OPTION_HELP = -1,    /* --help was given, or -h; they need no rule */
    OPTION_INVALID = -2, /* why[]: "-j: invalid value '0' (a number from 1 to 64)" */
};

/* Parses argv by at most 40 rules. Calls operand() for each operand in order; if `operand` is
 * NULL, the operands are left in argv, from optind on. Returns 0, OPTION_HELP, OPTION_INVALID,
 * or a result of handle() or operand(). why[] can contain any bytes of argv (text.h). */
int limefile_options_parse(const struct option_rule *, int argc, char **argv,
                           int (*operand)(const void *context, const char *word),
                           const void *context, char why[OPTION_ERROR_BYTES]);

/* Parses the value of one option into rule->value. The kind is one from OPTION_TEXT to
 * OPTION_WORD. given: the option as the user wrote it. If the value is invalid, fills why[]
 * with "GIVEN: invalid value 'TEXT' (0 to 1G)" and returns false. */
bool limefile_option_parse(const struct option_rule *, const char *given, const char *text,
                           char why[OPTION_ERROR_BYTES]);

/* Fills text, of `bytes` bytes, with "unknown option '--foo'; did you mean '--for'?", "option
 * '--bar' requires a value", "option '--baz' takes no value" or "option '--b' is ambiguous
 * (--bar, --baz)". Call it after getopt_long(argc, argv, shorts, longs, ...) has returned '?'
 * or ':', with the same tables. */
void limefile_option_error(char *text, size_t bytes, char *const *argv, const char *shorts,
                           const struct option *longs);

/* Returns true if the option must be followed by a value. */
bool limefile_option_requires_value(const struct option_rule *);

#endif
