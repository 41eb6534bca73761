/* report.c - print messages of limefs-io, one line each */
#include "report.h"
#include "text.h"

void job_vreport(const char *format, va_list args)
{
    limefile_text_print("limefs-io", format, args);
}

void job_report(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    job_vreport(format, args);
    va_end(args);
}
