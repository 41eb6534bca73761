/* log.c - one line at a time, to where somebody reads it */
#include "limefs.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include <fuse_log.h>

static bool to_stderr = true;

static void write_line(int priority, const char *format, va_list args)
{
    if (!to_stderr) {
        vsyslog(priority, format, args);
        return;
    }
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    fprintf(stderr, "limefs: %s\n", line);
}

void limefs_log(int priority, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(priority, format, args);
    va_end(args);
}

/* libfuse's own messages, which bring their newline along. */
static void from_libfuse(enum fuse_log_level level, const char *format, va_list args)
{
    if (to_stderr)
        vfprintf(stderr, format, args);
    else
        vsyslog((int)level, format, args);
}

void limefs_log_open(bool foreground)
{
    to_stderr = foreground;
    if (!foreground)
        openlog("limefs", LOG_PID, LOG_DAEMON);
    fuse_set_log_func(from_libfuse);
}
