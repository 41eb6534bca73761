/* say.h - what limefs-io prints for people; knows no MPI */
#ifndef JOB_SAY_H
#define JOB_SAY_H

#include <stdarg.h>

/* "limefs-io: text" on stderr: one line, written at once, with nothing in it that could steer a
 * terminal. It is cut after 5 KiB. */
void job_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void job_vsay(const char *format, va_list) __attribute__((format(printf, 1, 0)));

#endif
