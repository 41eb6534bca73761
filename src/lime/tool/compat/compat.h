/* compat.h - what the programs with the old C-LIME and Lemon names share */
#ifndef COMPAT_H
#define COMPAT_H

#include "container.h"

/* The old programs know two exit statuses only. */
int compat_status(int status);

/* "Usage: PROGRAM arguments" on stderr; returns 1. */
int compat_usage(const char *program, const char *arguments);

#endif
