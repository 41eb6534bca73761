/*
 * arguments.h - what lemon_benchmark is asked for
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <stdbool.h>
#include <stdio.h>

struct arguments {
    const char *file;
    int L; /* 0 with `read` */
    int measurements;
    bool checksum, force, keep, read, help;
};

/* False: they are wrong. */
bool arguments_parse(int argc, char **argv, struct arguments *);

/* How to call it, and, with `all`, what it does. */
void arguments_usage(FILE *to, bool all);

#endif
