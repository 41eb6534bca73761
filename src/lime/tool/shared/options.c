/* options.c - read options, and say what is wrong with one */
#define _GNU_SOURCE
#include "tool.h"
#include "optionerror.h"

#include <getopt.h>
#include <string.h>

static const char *last_shorts = "";
static const struct option none = {NULL, 0, NULL, 0}, *last_longs = &none;

int read_option(int argc, char **argv, const char *shorts, const struct option *longs,
                int *index)
{
    last_shorts = shorts;
    last_longs = longs;
    return getopt_long(argc, argv, shorts, longs, index);
}

int option_error(const struct command *command, char **argv)
{
    char text[4096];
    limefile_option_error(text, sizeof text, argv, last_shorts, last_longs);
    return usage_error(command, "%s", text);
}

int value_error(const struct command *command, const char *option, const char *noun,
                const char *value, const char *expected)
{
    if (noun)
        return usage_error(command, "%s: unknown %s '%s' (%s)", option, noun, value, expected);
    return usage_error(command, "%s: invalid value '%s' (%s)", option, value, expected);
}

int threads_option(const struct command *command, unsigned *threads)
{
    uint64_t n;
    if (!number_parse(optarg, strlen(optarg), &n) || n == 0 || n > UINT16_MAX)
        return value_error(command, "-j", NULL, optarg, "a number from 1 to 65535");
    *threads = (unsigned)n;
    return TOOL_GOOD;
}

bool no_options(const struct command *command, int argc, char **argv, int *status)
{
    static const struct option longs[] = {
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    int opt = read_option(argc, argv, "", longs, NULL);
    if (opt != -1)
        *status = opt == 'H' ? print_help(command) : option_error(command, argv);
    return opt != -1;
}
