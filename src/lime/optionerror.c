/* optionerror.c - describe an option that getopt_long() refused */
#define _GNU_SOURCE
#include "optionerror.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Whether the word, "--name" or "--name=value", is the option or an abbreviation of it. */
static bool is_name_of(const char *word, const struct option *option)
{
    size_t len = strcspn(word + 2, "=");
    return strncmp(word + 2, option->name, len) == 0;
}

/* getopt_long() leaves 0 in optopt. */
static void describe_unknown(char *text, size_t bytes, const char *word,
                             const struct option *longs)
{
    int found = 0;
    size_t n = (size_t)snprintf(text, bytes, "option '%.100s' is ambiguous (", word);
    for (const struct option *o = longs; o->name; o++)
        if (is_name_of(word, o) && n < bytes)
            n += (size_t)snprintf(text + n, bytes - n, "%s--%s", found++ ? ", " : "", o->name);
    if (found > 1 && n < bytes)
        snprintf(text + n, bytes - n, ")");
    if (found < 2)
        snprintf(text, bytes, "unknown option '%.*s'", (int)strcspn(word, "="), word);
}

/* A letter may be one of several in a word, which getopt_long() does not tell. */
static void describe_letter(char *text, size_t bytes, const char *shorts)
{
    const char *found = optopt == ':' ? NULL : strchr(shorts, optopt);
    if (found && found[1] == ':')
        snprintf(text, bytes, "option '-%c' requires a value", optopt);
    else
        snprintf(text, bytes, "unknown option '-%c'", optopt);
}

void limefile_option_error(char *text, size_t bytes, char *const *argv, const char *shorts,
                           const struct option *longs)
{
    const char *word = argv[optind - 1];
    bool is_long = strncmp(word, "--", 2) == 0;
    if (optopt == 0) {
        describe_unknown(text, bytes, word, longs);
        return;
    }
    for (const struct option *o = longs; is_long && o->name; o++)
        if (o->val == optopt && is_name_of(word, o)) {
            snprintf(text, bytes, "option '--%s' %s", o->name,
                     o->has_arg == no_argument ? "takes no value" : "requires a value");
            return;
        }
    describe_letter(text, bytes, shorts);
}
