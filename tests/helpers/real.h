/*
 * real.h - for helpers that stand before functions of the C library: the library's own
 */
#ifndef LIMEFS_TESTS_REAL_H
#define LIMEFS_TESTS_REAL_H

#include <dlfcn.h>
#include <stdarg.h>

#define REAL(name)                 \
    static __typeof__(&name) real; \
    if (!real)                     \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Of syscall(long number, ...): as many as there may be. */
#define SYSCALL_ARGUMENTS(number)                                           \
    long a, b, c, d, e, f;                                                  \
    va_list args;                                                           \
    va_start(args, number);                                                 \
    a = va_arg(args, long), b = va_arg(args, long), c = va_arg(args, long); \
    d = va_arg(args, long), e = va_arg(args, long), f = va_arg(args, long); \
    va_end(args)

#endif
