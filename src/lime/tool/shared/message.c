/* message.c - what goes to stderr, and help */
#define _GNU_SOURCE
#include "tool.h"
#include "limefile.h"
#include "progress.h"
#include "text.h"

#include <errno.h>
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
