/*
 * optionerror.h - describe an option that getopt_long() refused, in the same words in every
 * program. It needs nothing else of the library.
 */
#ifndef LIMEFILE_OPTIONERROR_H
#define LIMEFILE_OPTIONERROR_H

#include <getopt.h>
#include <stddef.h>

/* Fills text, of so many bytes, with "unknown option '--foo'", "option '--bar' requires a
 * value", "option '--baz' takes no value" or "option '--b' is ambiguous (--bar, --baz)". Call
 * it after getopt_long(argc, argv, shorts, longs, ...) has returned '?' or ':', with the same
 * tables. The text may hold any bytes of argv (text.h). */
void limefile_option_error(char *text, size_t bytes, char *const *argv, const char *shorts,
                           const struct option *longs);

#endif
