/* json_file.h - write the result file of --json; all functions run on rank 0 */
#ifndef BENCH_JSON_FILE_H
#define BENCH_JSON_FILE_H

#include "limeoutput.h"

#include <jansson.h>
#include <stdio.h>

/* The file of --json, or standard output for "-". */
struct bench_json {
    const char *name; /* as given; NULL: not open */
    FILE *to;
    struct limefile_output file; /* unused for standard output */
};

/* Creates a temporary file in the directory of `name`. Returns false, after a message, if the
 * file exists and `force` is false, or if another process has locked it (limeoutput.h). */
bool bench_json_open(struct bench_json *, const char *name, bool force);

/* Returns true, after a message, if the result file is also the data file `path`. The directory
 * of `path` must be absolute and free of symbolic links. */
bool bench_json_report_conflict(const struct bench_json *, const char *path);

/* Writes the object, whose reference it takes, renames the file to its name, and closes it.
 * Returns false, after a message, if that fails; then it has removed the temporary file. */
bool bench_json_write(struct bench_json *, json_t *);

/* Removes the temporary file, if there is one. Further calls do nothing. */
void bench_json_abort(struct bench_json *);

#endif
