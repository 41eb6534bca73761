/* log.c - log single lines to stderr or syslog, at a limited rate */
#define _GNU_SOURCE
#include "limefs.h"
#include "text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include <fuse_log.h>

enum {
    PERIOD = 10, /* seconds */
    LINES = 100, /* most in a period: a program may cause a million */
    LINE_BYTES = PATH_MAX + 512,
};

static atomic_bool to_stderr = true; /* changes while other threads run */

static void write_line(int priority, const char *format, va_list args)
{
    char line[LINE_BYTES];
    vsnprintf(line, sizeof line, format, args);
    limefile_text_defuse(line, "");
    if (to_stderr)
        fprintf(stderr, "limefs: %s\n", line);
    else
        syslog(priority, "%s", line);
}

static void write_text(int priority, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(priority, format, args);
    va_end(args);
}

/* Returns whether this period has room for one more line. If a new period begins, *left_out is
 * the number of lines that the last one dropped, otherwise 0. */
static bool has_room(unsigned long *left_out)
{
    static struct limefs_lock lock = {PTHREAD_MUTEX_INITIALIZER, LIMEFS_LOCK_LOG};
    static time_t begin;
    static unsigned long count;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *left_out = 0;
    limefs_lock(&lock);
    if (now.tv_sec - begin >= PERIOD) {
        *left_out = count > LINES ? count - LINES : 0;
        begin = now.tv_sec;
        count = 0;
    }
    bool room = ++count <= LINES;
    limefs_unlock(&lock);
    return room;
}

void limefs_log(int priority, const char *format, ...)
{
    va_list args;
    unsigned long left_out;
    if (!has_room(&left_out))
        return;
    if (left_out)
        write_text(LOG_WARNING, "log: %lu lines left out", left_out);
    va_start(args, format);
    write_line(priority, format, args);
    va_end(args);
}

/* ---- messages of libfuse and of programs that it runs ---- */

static char *collected; /* NULL: messages are printed */
static size_t collected_bytes;

/* Handles a message of libfuse, which is a part of a line or ends with its own newline. */
static void from_libfuse(enum fuse_log_level level, const char *format, va_list args)
{
    char text[LINE_BYTES];
    size_t len = strlen(format);
    bool ends = len > 0 && format[len - 1] == '\n';
    int n = vsnprintf(text, sizeof text, format, args);
    if (n < 0)
        return;
    if (ends && n > 0 && n < (int)sizeof text)
        text[n - 1] = '\0';
    limefile_text_defuse(text, "");
    if (collected)
        snprintf(collected + strlen(collected), collected_bytes - strlen(collected), "%s%s",
                 text, ends ? "\n" : "");
    else if (to_stderr)
        fprintf(stderr, "%s%s", text, ends ? "\n" : "");
    else
        syslog((int)level, "%s", text);
}

void limefs_log_open(bool foreground)
{
    to_stderr = foreground;
    if (!foreground)
        openlog("limefs", LOG_PID, LOG_DAEMON);
    fuse_set_log_func(from_libfuse);
}

void limefs_log_collect(char *text, size_t bytes)
{
    collected = text;
    collected_bytes = bytes;
    fuse_set_log_func(from_libfuse);
}

static int caught = -1, kept_stderr = -1;

void limefs_log_catch(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    kept_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (kept_stderr >= 0 && dup2(ends[1], STDERR_FILENO) >= 0)
        caught = ends[0];
    else
        close(ends[0]);
    close(ends[1]);
}

void limefs_log_release(const char *spared)
{
    char text[LINE_BYTES];
    ssize_t n;
    if (kept_stderr >= 0) {
        dup2(kept_stderr, STDERR_FILENO);
        close(kept_stderr);
        kept_stderr = -1;
    }
    while (caught >= 0 && (n = read(caught, text, sizeof text - 1)) > 0) {
        text[text[n - 1] == '\n' ? n - 1 : n] = '\0';
        limefile_text_defuse(text, spared);
        fprintf(stderr, "%s\n", text);
    }
    if (caught >= 0)
        close(caught);
    caught = -1;
}
