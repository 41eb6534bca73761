/* options.c - the command line */
#include "options.h"
#include "optionerror.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS_MAX = 32,
    FIRST_OPTION = 256, /* what getopt_long() gives for the first of the table */
};

int checkpoint_misuse(const struct checkpoint_world *world,
                      const struct checkpoint_command *command, const char *format, ...)
{
    char reason[CHECKPOINT_ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (world->rank == 0)
        checkpoint_say("%s: %s; see " CHECKPOINT_PROGRAM " %s --help", command->name, reason,
                       command->name);
    return CHECKPOINT_USAGE;
}

/* ---- values ---- */

static bool take_number(const struct checkpoint_option *o, const char **text, int64_t *value)
{
    static const char units[] = "kMG";
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    long long number = strtoll(*text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    *value = number;
    for (long i = unit ? unit - units + 1 : 0; i > 0; i--)
        if (__builtin_mul_overflow(*value, 1000, value))
            return false;
    *text = end + (unit != NULL);
    return errno == 0 && (double)*value >= o->least && (double)*value <= o->most;
}

static bool take_real(const struct checkpoint_option *o, const char **text, double *value)
{
    char *end;
    if ((**text < '0' || **text > '9') && **text != '.' && **text != '-')
        return false;
    /* strtod() takes 0x1 for a number. */
    if (**text == '0' && (*text)[1] == 'x') {
        *value = 0;
        *text += 1;
    } else {
        *value = strtod(*text, &end);
        if (end == *text)
            return false;
        *text = end;
    }
    return isfinite(*value) && *value >= o->least && *value <= o->most;
}

static bool take_three(const struct checkpoint_option *o, const char *text)
{
    int64_t *numbers = o->where;
    double *reals = o->where;
    for (int d = 0; d < 3; d++) {
        bool good = o->kind == CHECKPOINT_REALS ? take_real(o, &text, &reals[d])
                                                : take_number(o, &text, &numbers[d]);
        if (!good)
            return false;
        if (d == 0 && !*text && o->kind == CHECKPOINT_REALS) {
            reals[1] = reals[2] = reals[0];
            return true;
        }
        if (d < 2 && *text++ != 'x')
            return false;
    }
    return !*text;
}

static bool take_word(const struct checkpoint_option *o, const char *text)
{
    for (int i = 0; o->words[i]; i++)
        if (strcmp(o->words[i], text) == 0) {
            *(int *)o->where = i;
            return true;
        }
    return false;
}

static bool take(const struct checkpoint_option *o, const char *text)
{
    switch (o->kind) {
    case CHECKPOINT_FLAG:
        *(bool *)o->where = true;
        return true;
    case CHECKPOINT_NUMBER:
        return take_number(o, &text, o->where) && !*text;
    case CHECKPOINT_REAL:
        return take_real(o, &text, o->where) && !*text;
    case CHECKPOINT_REALS:
    case CHECKPOINT_EXTENTS:
        return take_three(o, text);
    case CHECKPOINT_WORD:
        return take_word(o, text);
    case CHECKPOINT_TEXT:
        *(const char **)o->where = text;
        return true;
    }
    return false;
}

static const char *expected(const struct checkpoint_option *o, char text[128])
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; o->kind == CHECKPOINT_WORD && o->words[i] && n < 128; i++)
        n += (size_t)snprintf(text + n, 128 - n, "%s%s", i ? ", " : "", o->words[i]);
    if (o->kind == CHECKPOINT_EXTENTS)
        return "three numbers, as in 4x4x4";
    if (o->kind == CHECKPOINT_REALS)
        return "a length, or three, as in 10x10x20";
    if (o->kind == CHECKPOINT_NUMBER || o->kind == CHECKPOINT_REAL)
        snprintf(text, 128, "%g to %g", o->least, o->most);
    return text;
}

/* ---- the line ---- */

static void make_tables(const struct checkpoint_option *table, size_t count,
                        struct option longs[OPTIONS_MAX + 1], char letters[2 * OPTIONS_MAX + 2])
{
    size_t n = 0;
    letters[n++] = ':';
    for (size_t i = 0; i < count; i++) {
        bool has_value = table[i].kind != CHECKPOINT_FLAG;
        longs[i] = (struct option){table[i].name, has_value ? required_argument : no_argument,
                                   NULL, FIRST_OPTION + (int)i};
        if (table[i].letter)
            letters[n++] = table[i].letter;
        if (table[i].letter && has_value)
            letters[n++] = ':';
    }
    longs[count] = (struct option){0};
    letters[n] = '\0';
}

static const struct checkpoint_option *find(const struct checkpoint_option *table, size_t count,
                                            int found)
{
    for (size_t i = 0; i < count; i++)
        if (found == FIRST_OPTION + (int)i || (table[i].letter && found == table[i].letter))
            return &table[i];
    return NULL;
}

static bool take_names(const struct checkpoint_world *world,
                       const struct checkpoint_command *command, int argc, char **argv,
                       int files, const char **file)
{
    if (argc - optind != files) {
        checkpoint_misuse(world, command, "%d name%s given, %d expected: %s", argc - optind,
                          argc - optind == 1 ? "" : "s", files, command->arguments);
        return false;
    }
    for (int i = 0; i < files; i++)
        file[i] = argv[optind + i];
    return true;
}

bool checkpoint_options(const struct checkpoint_world *world,
                        const struct checkpoint_command *command, int argc, char **argv,
                        const struct checkpoint_option *table, size_t count, int files,
                        const char **file)
{
    struct option longs[OPTIONS_MAX + 1];
    char letters[2 * OPTIONS_MAX + 2], text[128];
    char wrong[CHECKPOINT_ERROR_BYTES];
    make_tables(table, count, longs, letters);
    optind = 0; /* from the beginning */
    for (;;) {
        int found = getopt_long(argc, argv, letters, longs, NULL);
        if (found == -1)
            return take_names(world, command, argc, argv, files, file);
        const struct checkpoint_option *o = find(table, count, found);
        if (o && take(o, optarg))
            continue;
        if (o)
            snprintf(wrong, sizeof wrong, "--%s: %s '%s' (%s)", o->name,
                     o->kind == CHECKPOINT_WORD ? "unknown value" : "invalid value", optarg,
                     expected(o, text));
        else
            limefile_option_error(wrong, sizeof wrong, argv, letters, longs);
        checkpoint_misuse(world, command, "%s", wrong);
        return false;
    }
}
