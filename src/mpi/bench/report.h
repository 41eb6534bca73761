/*
 * report.h - results for people and for programs; by rank 0
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "limeoutput.h"
#include "measure.h"
#include "system.h"

#include <jansson.h>
#include <stdio.h>

/* ---- text ---- */

/* What is measured, and the results. */
void bench_text_head(const struct bench_run *, const struct bench_system *, FILE *to);
void bench_text_results(const struct bench_run *, FILE *to);

/* The same as times: a heading, and a line without its end. */
void bench_text_times_heading(FILE *to);
void bench_text_times(const struct bench_run *, const struct bench_entry *,
                      enum bench_operation, bool named, FILE *to);

/* The median time as a multiple of what the back end of that name took; 0 if that is not
 * measured. */
double bench_time_ratio(const struct bench_run *, const struct bench_entry *,
                        enum bench_operation, const char *name);

/* "lattice 32 x 16 x 16 x 16 of 576-byte sites, grid 2 x 1 x 1 x 1" */
void bench_text_lattice(const struct bench_pattern *, FILE *to);

/* ", key=value" for each. */
void bench_text_hints(const struct bench_task *, FILE *to);

/* ---- a line that says what goes on: on a terminal, and not in the first seconds ---- */

/* Whether standard error, or that of the mpirun above, is a terminal. */
void bench_progress_start(const struct bench_options *, const struct bench_world *);
void bench_progress(const struct bench_run *, const struct bench_entry *, enum bench_operation,
                    int repetition);
void bench_progress_clear(void);

/* ---- JSON ---- */

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

/* "program", "version", "time" and "system": what all objects begin with. */
json_t *bench_json_head(const struct bench_system *);

/* A list of numbers; a list of the lattice's 4. */
json_t *bench_json_numbers(const double *values, int n);
json_t *bench_json_extents(const int extents[BENCH_DIMS]);
json_t *bench_json_hints(const struct bench_task *);

json_t *bench_json_run(const struct bench_run *, const struct bench_system *);

#endif
