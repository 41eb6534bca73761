/* tool.c - messages, options, exit statuses and numbers that all sub-commands share */
#define _GNU_SOURCE
#include "tool.h"
#include "limeildg.h"
#include "suggest.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the progress bar ---- */

static bool bar_is_visible;

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_begin(struct progress *p, const char *label, uint64_t total)
{
    *p = (struct progress){.label = label, .total = total, .is_shown = isatty(STDERR_FILENO)};
    if (p->is_shown)
        p->start = seconds_now();
}

void progress_begin_files(struct progress *p, const char *label, uint64_t total)
{
    progress_begin(p, label, total);
    p->counts_files = true;
}

static void draw_file_bar(const struct progress *p)
{
    fprintf(stderr, "\r%-8s %" PRIu64 " of %" PRIu64 " files   ", p->label, p->done, p->total);
    bar_is_visible = true;
}

static void draw_byte_bar(const struct progress *p, double seconds)
{
    char rate[LIMEFILE_SIZE_CHARS], done[LIMEFILE_SIZE_CHARS];
    double speed = (double)p->done / seconds;
    unsigned left = speed > 0 && p->total > p->done
                        ? (unsigned)((double)(p->total - p->done) / speed + 0.5)
                        : 0;
    double percent = p->total ? 100.0 * (double)p->done / (double)p->total : 100.0;
    fprintf(stderr, "\r%-8s %3.0f%%  %6s  %6s/s  %u:%02u left   ", p->label,
            percent > 100 ? 100 : percent, limefile_format_size(p->done, done),
            limefile_format_size((uint64_t)speed, rate), left / 60, left % 60);
    bar_is_visible = true;
}

void progress_add(void *progress, uint64_t bytes)
{
    struct progress *p = progress;
    if (!p)
        return;
    p->done += bytes;
    if (!p->is_shown)
        return;
    double t = seconds_now();
    if (t - p->start < 1 || t - p->drawn < 0.2)
        return;
    p->drawn = t;
    if (p->counts_files)
        draw_file_bar(p);
    else
        draw_byte_bar(p, t - p->start);
}

void progress_to(struct progress *p, uint64_t done)
{
    if (p && done > p->done)
        progress_add(p, done - p->done);
}

bool progress_count(void *progress, uint64_t more)
{
    progress_add(progress, more);
    return true;
}

void progress_hide(void)
{
    if (bar_is_visible)
        fprintf(stderr, "\r%72s\r", "");
    bar_is_visible = false;
}

void progress_end(struct progress *p)
{
    p->is_shown = false;
    progress_hide();
}

/* ---- messages ---- */

static const char *program = "lime";
static int stdout_error; /* errno of the first failed flush */

static char first_message[MESSAGE_FIRST_MAX];

void message_set_program(const char *name)
{
    program = name;
}

void message_forget(void)
{
    *first_message = '\0';
}

const char *message_first(void)
{
    return first_message;
}

/* Formats "file: text", or "text". NULL: out of memory. The caller frees it. */
__attribute__((format(printf, 2, 0))) static char *format_line(const char *file,
                                                               const char *format, va_list args)
{
    char *text = NULL, *line = NULL;
    if (vasprintf(&text, format, args) < 0)
        return NULL;
    if (asprintf(&line, "%s%s%s", file ? file : "", file ? ": " : "", text) < 0)
        line = NULL;
    free(text);
    if (line)
        limefile_text_sanitize(line, "");
    return line;
}

void flush_stdout(void)
{
    if (fflush(stdout) != 0 && !stdout_error)
        stdout_error = errno;
}

__attribute__((format(printf, 2, 0))) static void print_message(const char *file,
                                                                const char *format,
                                                                va_list args)
{
    va_list copy;
    va_copy(copy, args);
    if (!*first_message)
        vsnprintf(first_message, sizeof first_message, format, copy);
    va_end(copy);
    if (strncmp(first_message, "warning: ", 9) == 0)
        message_forget();
    char *line = format_line(file, format, args);
    progress_hide();
    flush_stdout(); /* keeps both streams in order on a terminal */
    fprintf(stderr, "%s: %s\n", program, line ? line : "out of memory");
    free(line);
}

void print_line(const char *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *line = format_line(file, format, args);
    va_end(args);
    progress_hide();
    puts(line ? line : "out of memory");
    free(line);
}

void message(const char *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_message(file, format, args);
    va_end(args);
}

void message_code(const char *file, const char *action, int code)
{
    message(file, "%s: %s", action, limefile_strerror(code));
}

void message_record(const char *file, uint64_t ordinal, int code)
{
    message(file, "record %" PRIu64 ": read: %s", ordinal, limefile_strerror(code));
}

int report_error(const char *file, const char *action, int err)
{
    if (err)
        message_code(file, action, err);
    return err ? TOOL_BAD : TOOL_GOOD;
}

int report_output_error(const char *file, const char *action, int err)
{
    if (err)
        message_output(file, action, err);
    return err ? TOOL_BAD : TOOL_GOOD;
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
    print_message(command->name, format, args);
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

enum limefile_verdict status_verdict(int status)
{
    return status == TOOL_GOOD         ? LIMEFILE_GOOD
           : status == TOOL_UNVERIFIED ? LIMEFILE_UNVERIFIED
           : status == TOOL_BAD        ? LIMEFILE_BAD
                                       : LIMEFILE_UNREADABLE;
}

/* ---- options ---- */

int value_error(const struct command *command, const char *option, const char *noun,
                const char *value, const char *expected)
{
    struct limefile_suggestion near = {0};
    if (!noun)
        return usage_error(command, "%s: invalid value '%s' (%s)", option, value, expected);
    limefile_suggest_from_list(&near, value, expected);
    return usage_error(command, "%s: unknown %s '%s' (%s)%s", option, noun, value, expected,
                       limefile_suggest_text(&near));
}

int command_run(const struct command *command, int argc, char **argv)
{
    char why[OPTION_ERROR_BYTES];
    int status = limefile_options_parse(command->rules, argc, argv, command->handle_operand,
                                        command, why);
    int count = argc - optind;
    if (status == OPTION_HELP)
        return print_help(command);
    if (status == OPTION_INVALID)
        return usage_error(command, "%s", why);
    if (!status && command->operands.usage &&
        (count < command->operands.least || count > command->operands.most))
        return usage_error(command, "%s", command->operands.usage);
    return status ? status : command->run(count, argv + optind);
}

int directory_each(int dirfd, const char *path, int flags,
                   int (*each)(void *context, const char *name), void *context)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags), err = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        err = -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    for (const struct dirent *entry; !err && (errno = 0, entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            err = each(context, entry->d_name);
    if (!err)
        err = -errno;
    closedir(dir);
    return err;
}

/* ---- numbers ---- */

const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

bool number_parse_size(const char *text, size_t len, uint64_t *out)
{
    static const char units[] = "kmgtKMGT";
    unsigned power = 0;
    const char *unit = len ? memchr(units, text[len - 1], sizeof units - 1) : NULL;
    if (unit) {
        power = (unsigned)(unit - units) % 4 + 1;
        len--;
    }
    return limefile_parse_number(text, len, out) &&
           !__builtin_mul_overflow(*out, UINT64_C(1) << (10 * power), out);
}

enum { VALUE_TEXT_MAX = 2 * LIMEFILE_LFN_MAX };

__attribute__((format(printf, 2, 0))) static void format_sanitized(char text[VALUE_TEXT_MAX],
                                                                   const char *format,
                                                                   va_list args)
{
    vsnprintf(text, VALUE_TEXT_MAX, format, args);
    limefile_text_sanitize(text, "");
}

bool headings_are_bold(void)
{
    static enum { UNKNOWN, PLAIN, BOLD } style = UNKNOWN;
    const char *no_color = getenv("NO_COLOR");
    if (style == UNKNOWN)
        style = isatty(STDOUT_FILENO) && !(no_color && *no_color) ? BOLD : PLAIN;
    return style == BOLD;
}

void print_heading(const char *format, ...)
{
    char text[VALUE_TEXT_MAX];
    va_list args;
    va_start(args, format);
    format_sanitized(text, format, args);
    va_end(args);
    bool bold = headings_are_bold();
    printf("%s%s%s\n", bold ? "\033[1m" : "", text, bold ? "\033[m" : "");
}

void print_value(const char *name, const char *format, ...)
{
    char text[VALUE_TEXT_MAX];
    va_list args;
    va_start(args, format);
    format_sanitized(text, format, args);
    va_end(args);
    printf("  %-*s  %s\n", NAME_WIDTH, name, text);
}
