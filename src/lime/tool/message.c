/* message.c - what goes to stderr, and help */
#define _GNU_SOURCE
#include "tool.h"
#include "limefile.h"
#include "progress.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *program = "lime";

void message_program(const char *name)
{
    program = name;
}

/* A file's name can hold anything; nothing of it may steer a terminal. */
static void defuse(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

__attribute__((format(printf, 2, 0))) static void say(const char *file, const char *format,
                                                      va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        return;
    defuse(text);
    char *name = file ? strdup(file) : NULL;
    if (name)
        defuse(name);
    progress_hide();
    fflush(stdout); /* so that both streams stay in order on one terminal */
    fprintf(stderr, "%s: %s%s%s\n", program, name ? name : "", name ? ": " : "", text);
    free(name);
    free(text);
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

int print_help(const struct command *command)
{
    fputs(command->help, stdout);
    return TOOL_GOOD;
}

int finish_stdout(void)
{
    int failed = ferror(stdout);
    errno = EIO; /* an earlier failure has left no better reason */
    if (fflush(stdout) != 0)
        failed = 1;
    if (!failed)
        return TOOL_GOOD;
    message_code("standard output", "write", -errno);
    return TOOL_BAD;
}
