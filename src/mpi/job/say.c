/* say.c - messages, a line each */
#include "say.h"
#include "text.h"
#include "limejob.h"

#include <stdio.h>

void job_vsay(const char *format, va_list args)
{
    char line[LIMEJOB_PATH_MAX + 512];
    vsnprintf(line, sizeof line, format, args);
    limefile_text_defuse(line, "");
    fprintf(stderr, "limefs-io: %s\n", line);
}

void job_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job_vsay(format, args);
    va_end(args);
}
