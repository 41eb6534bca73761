/* say.c - print messages of limefs-io, one line each */
#include "say.h"
#include "text.h"

void job_vsay(const char *format, va_list args)
{
    limefile_text_say("limefs-io", format, args);
}

void job_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job_vsay(format, args);
    va_end(args);
}
