/* message.c - what goes to stderr, and help */
#define _GNU_SOURCE
#include "tool.h"
#include "limefile.h"
#include "progress.h"
#include "text.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *program = "lime";
static int stdout_error; /* errno of the first flush that failed */

void message_program(const char *name)
{
    program = name;
}

/* "file: text", or "text"; NULL where there is no memory. To be freed. */
__attribute__((format(printf, 2, 0))) static char *compose(const char *file, const char *format,
                                                           va_list args)
{
    char *text = NULL, *line = NULL;
    if (vasprintf(&text, format, args) < 0)
        return NULL;
    if (asprintf(&line, "%s%s%s", file ? file : "", file ? ": " : "", text) < 0)
        line = NULL;
    free(text);
    if (line)
        limefile_text_defuse(line, "");
    return line;
}

void flush_stdout(void)
{
    if (fflush(stdout) != 0 && !stdout_error)
        stdout_error = errno;
}

__attribute__((format(printf, 2, 0))) static void say(const char *file, const char *format,
                                                      va_list args)
{
    char *line = compose(file, format, args);
    progress_hide();
    flush_stdout(); /* so that both streams stay in order on one terminal */
    fprintf(stderr, "%s: %s\n", program, line ? line : "out of memory");
    free(line);
}

void answer(const char *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *line = compose(file, format, args);
    va_end(args);
    progress_hide();
    puts(line ? line : "out of memory");
    free(line);
}

void message(const char *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(file, format, args);
    va_end(args);
}

void message_code(const char *file, const char *action, int code)
{
    message(file, "%s: %s", action, limefile_strerror(code));
}

void message_output(const char *file, const char *action, int code)
{
    if (code >= LIMEFILE_E_OUTPUT_EXISTS && code <= LIMEFILE_E_OUTPUT_CHANGED)
        message(file, "%s", limefile_strerror(code));
    else
        message_code(file, action, code);
}

int usage_error(const struct command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(command->name, format, args);
    va_end(args);
    fprintf(stderr, "Try 'lime %s --help'.\n", command->name);
    return TOOL_UNUSABLE;
}

int option_error(const struct command *command, char **argv)
{
    const char *word = argv[optind - 1];
    if (optopt > 0x20 && optopt < 0x7f && strncmp(word, "--", 2) != 0)
        return usage_error(command, "-%c: unknown option, or its argument is missing", optopt);
    return usage_error(command, "%s: unknown option, or its argument is missing", word);
}

int threads_option(const struct command *command, unsigned *threads)
{
    uint64_t n;
    if (!number_parse(optarg, strlen(optarg), &n) || n == 0 || n > UINT16_MAX)
        return usage_error(command, "-j %s: not a number from 1 to %d", optarg, UINT16_MAX);
    *threads = (unsigned)n;
    return TOOL_GOOD;
}

int print_help(const struct command *command)
{
    fputs(command->help, stdout);
    return TOOL_GOOD;
}

int finish_stdout(void)
{
    flush_stdout();
    if (!ferror(stdout) && !stdout_error)
        return TOOL_GOOD;
    message_code("standard output", "write", -(stdout_error ? stdout_error : EIO));
    return TOOL_BAD;
}

bool no_options(const struct command *command, int argc, char **argv, int *status)
{
    static const struct option longs[] = {
        {"help", no_argument, NULL, 'H'},
        {NULL, 0, NULL, 0},
    };
    int opt = getopt_long(argc, argv, "", longs, NULL);
    if (opt != -1)
        *status = opt == 'H' ? print_help(command) : option_error(command, argv);
    return opt != -1;
}

/* ---- exit statuses ---- */

int worse_status(int a, int b)
{
    static const int order[] = {TOOL_GOOD, TOOL_UNVERIFIED, TOOL_BAD, TOOL_UNUSABLE};
    int worse = TOOL_GOOD;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i])
            worse = order[i];
    return worse;
}

int verdict_status(enum limefile_verdict verdict)
{
    static const int status[] = {
        [LIMEFILE_GOOD] = TOOL_GOOD,
        [LIMEFILE_SKIPPED] = TOOL_GOOD,
        [LIMEFILE_UNVERIFIED] = TOOL_UNVERIFIED,
        [LIMEFILE_BAD] = TOOL_BAD,
        [LIMEFILE_UNREADABLE] = TOOL_UNUSABLE,
    };
    return status[verdict];
}
