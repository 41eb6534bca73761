/*
 * jsonfile.h - the file of --json; by rank 0
 */
#ifndef BENCH_JSONFILE_H
#define BENCH_JSONFILE_H

#include "limeoutput.h"

#include <jansson.h>
#include <stdio.h>

/* The file of --json, or standard output for "-". */
struct bench_json {
    const char *name; /* as given; NULL: it is not open */
    FILE *to;
    struct limefile_output file; /* unless it is standard output */
};

/* Creates a temporary file in its directory (limeoutput.h). Returns false after a message: an
 * existing file, unless `force`; a container that another process has locked. */
bool bench_json_open(struct bench_json *, const char *name, bool force);

/* Returns whether it is also the file of data `path`, whose directory is absolute and without
 * links, after a message. */
bool bench_json_meets(const struct bench_json *, const char *path);

/* Writes the object, which is given away, and gives the file its name. Returns false after a
 * message. */
bool bench_json_write(struct bench_json *, json_t *);

/* Removes the temporary file, if there is one. */
void bench_json_drop(struct bench_json *);

#endif
