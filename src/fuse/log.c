/* log.c - one line at a time, to where somebody reads it */
#include "limefs.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <syslog.h>

#include <fuse_log.h>

enum {
    PERIOD = 10, /* seconds */
    LINES = 100, /* of them a broken container that is read a million times gets no more */
};

static atomic_bool to_stderr = true; /* changes while other threads have begun */

/* A file's name must neither steer a terminal nor forge a line of the log. */
static void tame(char *line)
{
    for (; *line; line++)
        if ((unsigned char)*line < 0x20 || *line == 0x7f)
            *line = '?';
}

static void write_line(int priority, const char *format, va_list args)
{
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    tame(line);
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

/* Whether there is room for one more line in this period; *left_out: how many there was none
 * for in the last, when a new one begins. */
static bool has_room(unsigned long *left_out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static time_t begin;
    static unsigned long count;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *left_out = 0;
    pthread_mutex_lock(&lock);
    if (now.tv_sec - begin >= PERIOD) {
        *left_out = count > LINES ? count - LINES : 0;
        begin = now.tv_sec;
        count = 0;
    }
    bool room = ++count <= LINES;
    pthread_mutex_unlock(&lock);
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
