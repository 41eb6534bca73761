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
    PERIOD_SECONDS = 10,
    LINES_MAX = 100, /* in a period; one program could cause a million */
    LINE_BYTES = PATH_MAX + 512,
};

static atomic_bool to_stderr = true; /* changes while other threads run */

__attribute__((format(printf, 2, 0))) static void write_log_va(int priority, const char *format,
                                                               va_list args)
{
    char line[LINE_BYTES];
    vsnprintf(line, sizeof line, format, args);
    limefile_text_sanitize(line, "");
    if (to_stderr)
        fprintf(stderr, "limefs: %s\n", line);
    else
        syslog(priority, "%s", line);
}

__attribute__((format(printf, 2, 3))) static void write_log(int priority, const char *format,
                                                            ...)
{
    va_list args;
    va_start(args, format);
    write_log_va(priority, format, args);
    va_end(args);
}

/* Counts a line and returns whether it may be logged in this period. *dropped: if the call
 * begins a new period, the number of lines dropped in the previous one; otherwise 0. */
static bool may_log_line(unsigned long *dropped)
{
    static struct limefs_lock lock = {PTHREAD_MUTEX_INITIALIZER, LIMEFS_LOCK_LOG};
    static time_t begin;
    static unsigned long count;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *dropped = 0;
    limefs_lock(&lock);
    if (now.tv_sec - begin >= PERIOD_SECONDS) {
        *dropped = count > LINES_MAX ? count - LINES_MAX : 0;
        begin = now.tv_sec;
        count = 0;
    }
    bool may_log = ++count <= LINES_MAX;
    limefs_unlock(&lock);
    return may_log;
}

void limefs_log(int priority, const char *format, ...)
{
    va_list args;
    unsigned long dropped;
    if (!may_log_line(&dropped))
        return;
    if (dropped)
        write_log(LOG_WARNING, "log: %lu messages dropped", dropped);
    va_start(args, format);
    write_log_va(priority, format, args);
    va_end(args);
}

/* ---- messages of libfuse and of programs that it runs ---- */

static char *capture_text; /* NULL: messages are printed */
static size_t capture_bytes;

/* Logs a message of libfuse: part of a line, or (if the format ends with a newline) its end. */
__attribute__((format(printf, 2, 0))) static void log_libfuse_message(enum fuse_log_level level,
                                                                      const char *format,
                                                                      va_list args)
{
    char text[LINE_BYTES];
    size_t len = strlen(format);
    bool ends_line = len > 0 && format[len - 1] == '\n';
    int n = vsnprintf(text, sizeof text, format, args);
    if (n < 0)
        return;
    if (ends_line && n > 0 && n < (int)sizeof text)
        text[n - 1] = '\0';
    limefile_text_sanitize(text, "");
    if (capture_text)
        snprintf(capture_text + strlen(capture_text), capture_bytes - strlen(capture_text),
                 "%s%s", text, ends_line ? "\n" : "");
    else if (to_stderr)
        fprintf(stderr, "%s%s", text, ends_line ? "\n" : "");
    else
        syslog((int)level, "%s", text);
}

void limefs_log_open(bool foreground)
{
    to_stderr = foreground;
    if (!foreground)
        openlog("limefs", LOG_PID, LOG_DAEMON);
    fuse_set_log_func(log_libfuse_message);
}

void limefs_log_capture_libfuse(char *text, size_t bytes)
{
    capture_text = text;
    capture_bytes = bytes;
    fuse_set_log_func(log_libfuse_message);
}

static int capture_fd = -1, saved_stderr = -1;

void limefs_log_capture_stderr(void)
{
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (saved_stderr >= 0 && dup2(pipe_fds[1], STDERR_FILENO) >= 0)
        capture_fd = pipe_fds[0];
    else
        close(pipe_fds[0]);
    close(pipe_fds[1]);
}

void limefs_log_restore_stderr(const char *allowed)
{
    char text[LINE_BYTES];
    ssize_t n;
    if (saved_stderr >= 0) {
        dup2(saved_stderr, STDERR_FILENO);
        close(saved_stderr);
        saved_stderr = -1;
    }
    while (capture_fd >= 0 && (n = read(capture_fd, text, sizeof text - 1)) > 0) {
        text[text[n - 1] == '\n' ? n - 1 : n] = '\0';
        limefile_text_sanitize(text, allowed);
        fprintf(stderr, "%s\n", text);
    }
    if (capture_fd >= 0)
        close(capture_fd);
    capture_fd = -1;
}
