/* calls_prctl.c - a program that forbids itself all system calls but read(2) and its like
 * (seccomp(2)) */
#define _GNU_SOURCE
#include "run.h"

#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

/* In strict mode read(2) is allowed, and none of those that we read by: from now on all is left
 * to the mount. It opens nothing any more. */
EXPORTED int prctl(int option, ...)
{
    va_list list;
    unsigned long value[4];
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        value[i] = va_arg(list, unsigned long);
    va_end(list);
    if (option == PR_SET_SECCOMP && value[0] == SECCOMP_MODE_STRICT)
        limefs_run_forget_all();
    return limefs_run_real()->prctl(option, value[0], value[1], value[2], value[3]);
}
