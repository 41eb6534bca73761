/* json_file.h - write the result file of --json; all functions run on rank 0 */
#ifndef BENCH_JSON_FILE_H
#define BENCH_JSON_FILE_H

#include "limeoutput.h"

#include <jansson.h>
#include <stdio.h>

/* The file of --json, or standard output for "-". */
struct bench_json {
    const char *name; /* the value of --json; NULL: not open */
    FILE *to;
    struct limefile_output file; /* unused for standard output */
};

/* Creates a temporary file in the directory of `name`. Returns false, after a message, if it
 * cannot, if `name` exists and `force` is false, or if another process has locked `name`. */
bool bench_json_open(struct bench_json *, const char *name, bool force);

/* Returns true, after a message, if the result file is also the data file `path`. The directory
 * of `path` must be absolute and free of symbolic links. */
bool bench_json_report_conflict(const struct bench_json *, const char *path);

/* Writes the object, releases the caller's reference to it, gives the file its name, and closes
 * the file. If that fails, removes the temporary file and returns false after a message. */
bool bench_json_write(struct bench_json *, json_t *);

/* Removes the temporary file, if there is one. Further calls do nothing. */
void bench_json_abort(struct bench_json *);

#endif
