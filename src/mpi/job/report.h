/* report.h - print messages of limefs-io on stderr; no MPI */
#ifndef JOB_REPORT_H
#define JOB_REPORT_H

#include <stdarg.h>

/* Prints "limefs-io: text" with one write(): one line, no control characters, at most 5 KiB. */
void job_report(const char *format, ...) __attribute__((format(printf, 1, 2)));
void job_vreport(const char *format, va_list) __attribute__((format(printf, 1, 0)));

#endif
