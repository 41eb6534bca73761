/*
 * real.h - call the C library's function from a helper that replaces it
 */
#ifndef LIMEFS_TESTS_REAL_H
#define LIMEFS_TESTS_REAL_H

#include <dlfcn.h>
#include <stdarg.h>

#define REAL(name)                 \
    static __typeof__(&name) real; \
    if (!real)                     \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* Declares the six possible arguments of syscall(long number, ...). */
#define SYSCALL_ARGUMENTS(number)                                           \
    long a, b, c, d, e, f;                                                  \
    va_list args;                                                           \
    va_start(args, number);                                                 \
    a = va_arg(args, long), b = va_arg(args, long), c = va_arg(args, long); \
    d = va_arg(args, long), e = va_arg(args, long), f = va_arg(args, long); \
    va_end(args)

#endif
